"""What the machine's NVIDIA GPUs have used, as their driver counts it."""

from __future__ import annotations

import ctypes

_OK = 0


def gpu_joules() -> float | None:
    """Energy that all GPUs have used since their driver was loaded, in joules; None: nobody counts it."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    count = ctypes.c_uint()
    if nvml.nvmlInit_v2() != _OK:
        return None
    try:
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != _OK or not count.value:
            return None
        total = 0.0
        for index in range(count.value):
            device, millijoules = ctypes.c_void_p(), ctypes.c_ulonglong()
            if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) != _OK:
                return None
            if nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(millijoules)) != _OK:
                return None
            total += millijoules.value / 1000
        return total
    finally:
        nvml.nvmlShutdown()
