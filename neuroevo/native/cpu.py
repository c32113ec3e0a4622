"""Choice of the instruction set level of a portable build, among those of custom_ops/cmake/Levels.cmake."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from neuroevo.core.errors import UserError
from neuroevo.core.problems import did_you_mean

VARIABLE = "NEUROEVO_CPU"
PORTABLE = "portable"  # architecture name of a portable build
_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Level:
    """Instruction set level.

    Attributes:
        base: Level that this level extends; None for the first.
        flags: Linux's names of the added instruction sets.
    """

    base: str | None
    flags: frozenset[str]


def _level(base: str | None, flags: str = "") -> Level:
    return Level(base, frozenset(flags.split()))


LEVELS: Mapping[str, Level] = {  # in ascending order
    "x86-64": _level(None),
    "x86-64-v3": _level(
        "x86-64",
        "abm avx avx2 bmi1 bmi2 cx16 f16c fma lahf_lm movbe pni popcnt sse4_1 sse4_2 ssse3 xsave",
    ),
    "x86-64-v3-vnni": _level("x86-64-v3", "avx_vnni"),
    "x86-64-v4": _level("x86-64-v3", "avx512bw avx512cd avx512dq avx512f avx512vl"),
    "x86-64-v4-vnni": _level("x86-64-v4", "avx512_vnni"),
}
"""Levels of the x86-64 specification, and two with the dot product instructions that integer networks use."""


def processor_flags() -> frozenset[str]:
    """Return the processor flags that Linux reports as usable by programs; empty if it reports no flags."""
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def chain(level: str) -> list[str]:
    """Return a level and all levels that it extends, the highest first.

    Args:
        level: One of LEVELS.
    """
    base = LEVELS[level].base
    return [level, *(chain(base) if base is not None else [])]


def lacking(level: str, flags: Set[str]) -> list[str]:
    """Return the flags that a processor lacks to run a level's code, sorted; empty if it can run the code.

    Args:
        level: One of LEVELS.
        flags: The processor's flags, as processor_flags() returns them.
    """
    return sorted(frozenset().union(*(LEVELS[each].flags for each in chain(level))) - flags)


def runnable(flags: Set[str]) -> list[str]:
    """Return the levels whose code a processor can run, the highest last.

    Args:
        flags: The processor's flags, as processor_flags() returns them.
    """
    return [level for level in LEVELS if not lacking(level, flags)]


def choose(arch: str) -> str:
    """Return the level whose code to use: the processor's highest, or the value of the variable NEUROEVO_CPU.

    Args:
        arch: Architecture that the native libraries were built for.

    Returns:
        A key of LEVELS if `arch` is "portable", a build that contains all of them; otherwise `arch`.

    Raises:
        UserError: The variable names an unknown or unavailable level, or a level that this processor cannot run.
    """
    wanted = os.environ.get(VARIABLE, "")
    if arch != PORTABLE:
        if wanted not in ("", arch):
            raise UserError(
                f"{VARIABLE} is '{wanted}', but the native libraries were built for '{arch}' only; expected {arch} or "
                f"an unset variable, or a portable build (make build ARCH={PORTABLE})"
            )
        return arch
    flags = processor_flags()
    if not wanted:
        return runnable(flags)[-1]
    if wanted not in LEVELS:
        meant = did_you_mean(wanted, LEVELS)
        raise UserError(f"{VARIABLE} is '{wanted}', which is unknown{meant}, expected one of {', '.join(LEVELS)}")
    if missing := lacking(wanted, flags):
        raise UserError(
            f"{VARIABLE} is '{wanted}', but this machine's processor lacks {', '.join(missing)}; expected one of "
            f"{', '.join(runnable(flags))}"
        )
    return wanted
