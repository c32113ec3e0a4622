"""JSON payloads of the page. Arrays are encoded as {"dtype": ..., "data": base64}, which is fast to decode."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

_DTYPES = {np.dtype(np.float32): "f4", np.dtype(np.int32): "i4", np.dtype(np.int16): "i2", np.dtype(np.float64): "f8"}


def array(values: np.ndarray) -> dict[str, str]:
    """Encode an array.

    Args:
        values: float32, float64, int16 or int32, of any shape; the browser receives it flattened.

    Raises:
        KeyError: The dtype is not supported.
    """
    data = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
    return {"dtype": _DTYPES[values.dtype], "data": base64.b64encode(data.tobytes()).decode()}


def plain(value: Any) -> Any:
    """Convert TOML and NumPy values to JSON values: non-finite numbers to null, unsupported types to strings.

    Args:
        value: Tables, lists and values.
    """
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int | str) or value is None else str(value)


def text(value: Any) -> bytes:
    """Serialize a payload.

    Args:
        value: JSON values without non-finite numbers.
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
