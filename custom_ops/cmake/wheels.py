"""Split a wheel built by pip into two wheels for distribution: wheels.py WHEEL FOLDER.

The Arcade Learning Environment is licensed under GPL-2.0. The library that links it is therefore in a separate wheel,
neuroevo-ale, and `neuroevo` stays under the MIT license. auditwheel tags each wheel with the oldest glibc it supports.
"""

import subprocess
import sys
import tempfile
from copy import copy
from email.message import Message
from pathlib import Path

from wheel.wheelfile import WheelFile

ALE = "libneuroevo_atari.so"
ROOT = Path(__file__).resolve().parents[2]
PURPOSE = "The Atari environments of neuroevo, which link the Arcade Learning Environment"


def split(built: Path, folder: Path) -> list[Path]:
    """Write a wheel without ALE's library and a wheel with only this library; return both paths."""
    with WheelFile(built) as source:
        name, version, tag, platform = source.parsed_filename.group("name", "ver", "pyver", "plat")
        assert tag == "py3", f"{built}: expected one wheel for every Python"
        records = f"{name}-{version}.dist-info/"
        paths = [folder / built.name, folder / f"{name}_ale-{version}-py3-none-{platform}.whl"]
        with WheelFile(paths[0], "w") as rest, WheelFile(paths[1], "w") as ale:
            for member in source.infolist():
                target = ale if Path(member.filename).name == ALE else rest
                if member.filename != source.record_path:
                    target.writestr(copy(member), source.read(member))
            (license_file,) = ROOT.glob("build/ale_py-*/LICENSE.md")
            own = f"{name}_ale-{version}.dist-info/"
            ale.writestr(f"{own}WHEEL", source.read(f"{records}WHEEL"))
            ale.writestr(f"{own}licenses/LICENSE.md", license_file.read_bytes())
            ale.writestr(f"{own}METADATA", bytes(_metadata(name, version)))
    return paths


def _metadata(name: str, version: str) -> Message:
    metadata = Message()
    for key, value in {
        "Metadata-Version": "2.4",
        "Name": f"{name}-ale",
        "Version": version,
        "Summary": PURPOSE,
        "License-Expression": "GPL-2.0-only",
        "License-File": "LICENSE.md",
        "Requires-Dist": f"{name}=={version}",
    }.items():
        metadata[key] = value
    return metadata


def main(built: str, folder: str) -> None:
    # Libraries provided by other packages.
    others = (["libmujoco.so.*", "libtensorflow_framework.so.*"], ["libneuroevo_core.so"])
    with tempfile.TemporaryDirectory() as scratch:
        for wheel, libraries in zip(split(Path(built), Path(scratch)), others, strict=True):
            excluded = [f"--exclude={library}" for library in libraries]
            command = [sys.executable, "-m", "auditwheel", "repair", *excluded, f"--wheel-dir={folder}", wheel]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
