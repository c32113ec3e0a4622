"""Choice of a portable build's code for this processor, of all that custom_ops/cmake/Levels.cmake compiles."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from neuroevo.core.errors import UserError
from neuroevo.core.problems import did_you_mean

VARIABLE = "NEUROEVO_CPU"
PORTABLE = "portable"  # what such a build calls its architecture
_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Level:
    """A set of instructions.

    Attributes:
        base: The level that it adds to; None for the first.
        flags: Linux's names of the instructions that it adds.
    """

    base: str | None
    flags: frozenset[str]


def _level(base: str | None, flags: str = "") -> Level:
    return Level(base, frozenset(flags.split()))


LEVELS: Mapping[str, Level] = {  # the better, the later
    "x86-64": _level(None),
    "x86-64-v3": _level(
        "x86-64",
        "abm avx avx2 bmi1 bmi2 cx16 f16c fma lahf_lm movbe pni popcnt sse4_1 sse4_2 ssse3 xsave",
    ),
    "x86-64-v3-vnni": _level("x86-64-v3", "avx_vnni"),
    "x86-64-v4": _level("x86-64-v3", "avx512bw avx512cd avx512dq avx512f avx512vl"),
    "x86-64-v4-vnni": _level("x86-64-v4", "avx512_vnni"),
}
"""Those that x86-64's own specification names, and two with the dot products that integer networks are made of."""


def processor_flags() -> frozenset[str]:
    """Return the processor flags that Linux reports as usable by programs; empty where it reports none."""
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def chain(level: str) -> list[str]:
    """Return a level and all levels that it adds to, the best first.

    Args:
        level: One of LEVELS.
    """
    base = LEVELS[level].base
    return [level, *(chain(base) if base is not None else [])]


def lacking(level: str, flags: Set[str]) -> list[str]:
    """Return the flags that a processor lacks to run a level's code, sorted; empty where it runs it.

    Args:
        level: One of LEVELS.
        flags: The processor's flags, as processor_flags() returns them.
    """
    return sorted(frozenset().union(*(LEVELS[each].flags for each in chain(level))) - flags)


def runnable(flags: Set[str]) -> list[str]:
    """Return the levels whose code a processor runs, the best last.

    Args:
        flags: The processor's flags, as processor_flags() returns them.
    """
    return [level for level in LEVELS if not lacking(level, flags)]


def choose(arch: str) -> str:
    """Return the level whose code is used: the processor's best, or the one that the variable NEUROEVO_CPU names.

    Args:
        arch: What the native libraries were built for.

    Returns:
        One of LEVELS if `arch` is "portable", which contains all of them; otherwise `arch`, the only one.

    Raises:
        UserError: The variable names an unknown or unavailable level, or one that this processor cannot run.
    """
    wanted = os.environ.get(VARIABLE, "")
    if arch != PORTABLE:
        if wanted not in ("", arch):
            raise UserError(
                f"{VARIABLE} is '{wanted}', but the native libraries were built for '{arch}' alone; expected {arch} or "
                f"none, or a build for all (make build ARCH={PORTABLE})"
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
