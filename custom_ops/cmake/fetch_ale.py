"""Download the sources of the Arcade Learning Environment into build/: fetch_ale.py BUILD_DIRECTORY.

pyproject.toml pins the version of ale-py. pip downloads the source distribution from its configured package index; if
the tarball is already in the build directory, no network is needed. The tarball is only unpacked if its SHA-256 matches
the hash below. ALE is licensed under GPL-2.0 and is therefore not part of this repository.
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
    """Return the ale-py version pinned in pyproject.toml, which must have a known hash."""
    match = re.search(r'"ale-py==([0-9.]+)"', PYPROJECT.read_text())
    if match is None:
        sys.exit(f'{PYPROJECT}: found no dependency of the form "ale-py==VERSION"')
    if match[1] not in SHA256:
        sys.exit(f"ale-py {match[1]} has no SHA-256 in {__file__}; known: {', '.join(SHA256)}")
    return match[1]


def download(version: str, build: Path) -> None:
    """Download the tarball into `build` with pip, which verifies its hash."""
    with tempfile.TemporaryDirectory() as scratch:
        # Only a requirements file can carry a hash.
        requirements = Path(scratch) / "requirements.txt"
        requirements.write_text(f"ale-py=={version} --hash=sha256:{SHA256[version]}\n")
        # Without build isolation, pip gets the metadata from the installed scikit-build-core; with it, pip would first
        # install ale-py's build requirements (including jax), which a download does not need.
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pip += ["--no-binary=ale-py", "--no-build-isolation", "--require-hashes"]
        result = subprocess.run([*pip, f"--requirement={requirements}", f"--dest={build}"])
    if result.returncode != 0:
        sys.exit(
            f"pip could not download the sources of ale-py {version} (its message is above). Without network, copy "
            f"ale_py-{version}.tar.gz with SHA-256 {SHA256[version]} to {build}/, or to a folder listed in the "
            "environment variable PIP_FIND_LINKS, and try again"
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
        # Older versions of Python have no filters; there, the hash ensures that the archive is trusted.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(build, members, **safe)
    done.write_text(actual + "\n")


if __name__ == "__main__":
    main()
