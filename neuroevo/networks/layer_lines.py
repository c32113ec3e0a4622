"""Conversion of layers, as network.layers and user-defined network functions write them, to those of the native core.

    conv 32 8x8/4 same       32 filters of 8 x 8, 4 pixels apart (/4; without it 1); `same` pads the image's border with
                             zeros as TensorFlow does, `valid`, the default, does not
    dense 512                512 units, fully connected to the previous layer
    lstm 128                 128 recurrent units, whose state is reset at the start of an episode
    max_pool 2x2, avg_pool 3x3/2 same    the default stride is the window's width
    relu, tanh, silu, gelu, leaky_relu 0.01
    layer_norm               over the channels of each position
    vbn                      virtual batch normalization, with the statistics of a reference batch
    bias                     after a layer without bias

conv, dense and lstm accept `std=1.0`, the standard deviation of initial weights before division by the square root of
the number of inputs. conv and dense have a bias unless `bias=false` is given, for example before vbn or layer_norm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from neuroevo.core.problems import did_you_mean

_PLAIN = ("relu", "tanh", "silu", "gelu", "layer_norm", "vbn", "bias")
_WINDOW = re.compile(r"([0-9]+)x([0-9]+)(?:/([0-9]+))?")
_SLOPE = "0.01"
_STD = "1.0"


def core_layers(lines: Sequence[str]) -> list[str]:
    """Return the layers in the text form of the native core (custom_ops/networks/network.h).

    Args:
        lines: Layers, one per line, as above.

    Raises:
        ValueError: A line is not a valid layer; the message contains the line and the expected form.
    """
    return [layer for line in lines for layer in _layers(line)]


def _layers(line: object) -> list[str]:
    if not isinstance(line, str) or not line.split():
        raise ValueError(f'{line!r}: expected a layer such as "dense 256" or "relu"')
    kind, *words = line.split()
    if kind not in _KINDS:
        raise ValueError(f'"{line}": expected a layer of {", ".join(_KINDS)}{did_you_mean(kind, _KINDS)}')
    options = dict(word.split("=", 1) for word in words if "=" in word)
    form, known, make = _KINDS[kind]
    unknown = [name for name in options if name not in known]
    made = None if unknown else make([kind, *(word for word in words if "=" not in word)], options)
    if made is None:
        raise ValueError(f'"{line}": expected {form}')
    return made


def _plain(words: list[str], _: dict[str, str]) -> list[str] | None:
    return [words[0]] if len(words) == 1 else None


def _leaky_relu(words: list[str], _: dict[str, str]) -> list[str] | None:
    slope = words[1] if len(words) > 1 else _SLOPE
    return [f"leaky_relu {slope}"] if len(words) <= 2 and _is_number(slope) else None


def _dense(words: list[str], options: dict[str, str]) -> list[str] | None:
    tail = _std_and_bias(options)
    if len(words) != 2 or not _is_count(words[1]) or tail is None:
        return None
    return [f"{words[0]} {words[1]} {tail[0]}", *tail[1]]


def _lstm(words: list[str], options: dict[str, str]) -> list[str] | None:
    made = _dense(words, {**options, "bias": "false"})  # lstm layers of the core include a bias
    return made


def _conv(words: list[str], options: dict[str, str]) -> list[str] | None:
    tail = _std_and_bias(options)
    if len(words) not in (3, 4) or not _is_count(words[1]) or tail is None:
        return None
    window = _window(words[2:], apart=1)
    return None if window is None else [f"conv {words[1]} {window} {tail[0]}", *tail[1]]


def _pool(words: list[str], _: dict[str, str]) -> list[str] | None:
    window = _window(words[1:], apart=None)
    return None if window is None else [f"{words[0]} {window}"]


def _window(words: list[str], apart: int | None) -> str | None:
    """Convert the words KHxKW[/STRIDE] and, optionally, padding to the core's form; None if they are malformed."""
    found = _WINDOW.fullmatch(words[0]) if len(words) in (1, 2) else None
    padding = words[1] if len(words) == 2 else "valid"
    if found is None or padding not in ("same", "valid"):
        return None
    height, width, stride = found.groups()
    if stride is None and apart is None and height != width:
        return None  # the default stride is ambiguous
    sizes = int(height), int(width), int(stride or apart or width)
    return None if min(sizes) < 1 else f"{sizes[0]} {sizes[1]} {sizes[2]} {padding}"


def _std_and_bias(options: dict[str, str]) -> tuple[str, list[str]] | None:
    std, bias = options.get("std", _STD), options.get("bias", "true")
    if not _is_number(std) or bias not in ("true", "false"):
        return None
    return std, ["bias"] if bias == "true" else []


def _is_count(word: str) -> bool:
    return word.isdecimal() and word.isascii() and int(word) > 0


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word)) and float(word) >= 0 and "_" not in word
    except ValueError:
        return False


_Make = Callable[[list[str], dict[str, str]], list[str] | None]
_WEIGHTS = " [std=NUMBER] [bias=false]"
# Form, supported options and conversion function of each kind of layer.
_KINDS: dict[str, tuple[str, tuple[str, ...], _Make]] = {
    "conv": ("conv FILTERS HEIGHTxWIDTH[/STRIDE] [same|valid]" + _WEIGHTS, ("std", "bias"), _conv),
    "dense": ("dense UNITS" + _WEIGHTS, ("std", "bias"), _dense),
    "lstm": ("lstm UNITS [std=NUMBER]", ("std",), _lstm),
    "max_pool": ("max_pool HEIGHTxWIDTH[/STRIDE] [same|valid]", (), _pool),
    "avg_pool": ("avg_pool HEIGHTxWIDTH[/STRIDE] [same|valid]", (), _pool),
    "leaky_relu": ("leaky_relu [SLOPE]", (), _leaky_relu),
    **{name: (f"{name} alone", (), _plain) for name in _PLAIN},
}


def forms() -> dict[str, str]:
    """Return the syntax of each kind of layer, for documentation."""
    return {kind: form for kind, (form, _, _) in _KINDS.items()}
