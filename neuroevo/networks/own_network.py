"""User-defined networks: a function in a module, `network.name = "module:function"`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from neuroevo.core.errors import UserError
from neuroevo.core.user_module import find_function, raised
from neuroevo.networks.layer_lines import core_layers

_EXPECTED = "expected module:function, such as experiments.examples.networks:small"


def find_network(name: str) -> Callable[..., Any]:
    """Import the user's function of (observation shape, number of outputs) that returns lines of layers.

    Args:
        name: module:function.

    Raises:
        UserError: No such function exists, or importing the module raises an exception, which is the error's cause.
    """
    return find_function(name, _EXPECTED)


def own_layers(name: str, shape: tuple[int, ...], outputs: int) -> list[str]:
    """Return the layers of the user's function, in the text form of the native core.

    Args:
        name: module:function.
        shape: Shape of an observation.
        outputs: Number of outputs that the last layer must have.

    Raises:
        UserError: No such function exists, it raises an exception (the error's cause), or it returns invalid layers.
    """
    function = find_network(name)
    try:
        lines = function(shape, outputs)
    except Exception as error:
        raise UserError(raised(f"{name}({shape}, {outputs})", error)) from error
    if isinstance(lines, str) or not isinstance(lines, Sequence) or not lines:
        raise UserError(f"{name} returns {lines!r}, expected a list of layers, such as ['dense 64', 'relu', 'dense 4']")
    try:
        return core_layers(lines)
    except ValueError as error:
        raise UserError(f"{name} returns the layer {error}") from None
