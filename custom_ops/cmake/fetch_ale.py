"""Puts the Arcade Learning Environment's sources into build/: fetch_ale.py BUILD_DIRECTORY.

The version is the one that pyproject.toml pins for the ale-py wheel. pip downloads the source distribution by name from
wherever pip is set up to look; a tarball already in the build directory, carried there by hand, needs no network.
Either way it is unpacked only if its SHA-256 is the one below. ALE is GPL-2.0 and so never part of this repository.
"""

import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SHA256 = {"0.12.1": "c503d574c5983e1063b451201ccb779d935919c0f6bf116fb0f4f8aa4c86d249"}
PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def pinned_version() -> str:
    """The ale-py version of pyproject.toml, which must have a known hash."""
    match = re.search(r'"ale-py==([0-9.]+)"', PYPROJECT.read_text())
    if match is None:
        sys.exit(f'{PYPROJECT}: found no dependency of the form "ale-py==VERSION"')
    if match[1] not in SHA256:
        sys.exit(f"ale-py {match[1]} has no SHA-256 in {__file__}; known: {', '.join(SHA256)}")
    return match[1]


def download(version: str, build: Path) -> None:
    """Lets pip fetch and check the tarball into `build`."""
    with tempfile.TemporaryDirectory() as scratch:
        # Only a requirements file can carry a hash.
        requirements = Path(scratch) / "requirements.txt"
        requirements.write_text(f"ale-py=={version} --hash=sha256:{SHA256[version]}\n")
        # Without build isolation pip asks the installed scikit-build-core for the metadata; with it, pip would first
        # install ale-py's build requirements (jax among them), which a download does not need.
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pip += ["--no-binary=ale-py", "--no-build-isolation", "--require-hashes"]
        result = subprocess.run([*pip, f"--requirement={requirements}", f"--dest={build}"])
    if result.returncode != 0:
        sys.exit(
            f"pip could not download the sources of ale-py {version} (its message is above). Without network: put "
            f"ale_py-{version}.tar.gz with SHA-256 {SHA256[version]} into {build}/, or into a folder that the variable "
            "PIP_FIND_LINKS names, and try again"
        )


def main() -> None:
    build = Path(sys.argv[1])
    version = pinned_version()
    tarball, sources = build / f"ale_py-{version}.tar.gz", build / f"ale_py-{version}"
    done = sources / ".sha256"  # written last: an interrupted unpacking starts again
    build.mkdir(parents=True, exist_ok=True)
    if not tarball.exists():
        if done.exists():
            return
        download(version, build)
    actual = hashlib.sha256(tarball.read_bytes()).hexdigest()
    if actual != SHA256[version]:
        sys.exit(f"{tarball} has SHA-256 {actual}, expected {SHA256[version]}; delete it and try again")
    if done.exists():
        return
    with tarfile.open(tarball) as archive:
        wanted = re.compile(rf"ale_py-{re.escape(version)}/(version\.txt|LICENSE\.md|src/ale/(?!python/).*)")
        members = [member for member in archive if wanted.fullmatch(member.name)]
        # Older Pythons have no filters; the hash vouches for the archive there.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(build, members, **safe)
    done.write_text(actual + "\n")


if __name__ == "__main__":
    main()
