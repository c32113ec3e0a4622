"""Memory leaks of neuroevo's native code, found by AddressSanitizer's leak detection."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

_BLOCKS = re.compile(r"^(?:Direct|Indirect) leak of .*\n(?: +#\d+ .*\n)+", re.MULTILINE)
# Frames that allocate for their callers: the runtime, the standard library, and templates of TensorFlow's headers.
_HELPERS = re.compile(r"/libsanitizer/|/libasan\.so|/libstdc\+\+\.so|/include/")
_OURS = re.compile(r"\bcustom_ops/|/libneuroevo_\w+\.so")


def own_leaks(folder: Path) -> str:
    """Looks for leaks in this process, if its native libraries are built with AddressSanitizer.

    Python and TensorFlow keep much until their process ends, and lose some: what they have allocated is left out.

    Args:
        folder: Where the sanitizer may write its report.

    Returns:
        The report on each leak, "" without leaks.
    """
    runtime = ctypes.CDLL(None)
    if not hasattr(runtime, "__lsan_do_recoverable_leak_check"):
        return ""
    report = folder / "leaks"
    runtime.__sanitizer_set_report_path(os.fsencode(report))  # to which it adds the number of the process
    runtime.__lsan_do_recoverable_leak_check()
    return "\n".join(ours(path.read_text()) for path in folder.glob(f"{report.name}.*"))


def ours(report: str) -> str:
    """The leaks of a report that were allocated in native code of ours.

    Args:
        report: As LeakSanitizer writes it.
    """
    return "\n".join(block for block in _BLOCKS.findall(report) if _OURS.search(_allocator(block)))


def _allocator(block: str) -> str:
    """The frame that wanted the memory; "" if it is not known."""
    frames = block.splitlines()[1:]
    return next((frame for frame in frames if not _HELPERS.search(frame)), "")
