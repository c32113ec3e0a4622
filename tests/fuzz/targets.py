"""Table of the fuzz targets that `make fuzz` runs.

A target is a program that takes libFuzzer's arguments, such as what clang's -fsanitize=fuzzer links or a Python script
that calls atheris.Fuzz(). tests/fuzz/inputs/NAME contains its initial inputs, including those that once made it fail,
and dictionaries/NAME.dict, if it exists, words that it may combine.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/fuzz"
NATIVE = BUILD / "native"  # CMake's folder


@dataclass(frozen=True)
class Target:
    """One program that is fed with inputs."""

    name: str
    command: tuple[str, ...]
    max_length: int = 4096  # bytes of an input
    native: bool = False  # compiled from tests/fuzz/native/NAME.cc
    needs: str = ""  # a Python package, without which it is skipped
    options: tuple[str, ...] = ()  # more of libFuzzer's


def native(name: str, **rest) -> Target:
    """A target in C++."""
    return Target(name, (str(NATIVE / "fuzz" / name),), native=True, **rest)


def python(name: str, **rest) -> Target:
    """A target in Python: a row of tests/fuzz/parsers/targets.py, which makes the inputs that it begins with itself."""
    command = (sys.executable, "-m", "tests.fuzz.parsers", name)
    return Target(name, command, needs="atheris", **{"max_length": 8192, **rest})


TARGETS = (
    native("networks", max_length=512),
    native("mazes", max_length=1024),
    native("env_options", max_length=512),
    native("gymnasium", max_length=1024),
    native("c_interface", max_length=1024),
    python("database", max_length=1 << 16),
    python("config_toml"),
    python("config_2018"),
    python("sweep"),
    python("layer_lines"),
)
