"""Conversion of networks to ONNX models; see network_export.py."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from neuroevo.analysis.exported_network import Exported, how_to_act
from neuroevo.core.errors import UserError
from neuroevo.core.genome import to_json
from neuroevo.core.observation_statistics import CLIP
from neuroevo.networks.layers import Layer

_OPSET, _IR = 20, 9  # ONNX 1.15, the first version with Gelu
_EPSILON = 1e-3  # for layer_norm
_TRANSPOSED = (0, 3, 1, 2)  # from [K, height, width, channels] to ONNX's [K, channels, height, width]


def to_onnx(network: Exported) -> onnx.ModelProto:
    """Build the network as an ONNX model.

    Args:
        network: The network.

    Returns:
        The model; its doc_string describes how to turn its outputs into actions.

    Raises:
        UserError: The network has a graph layer, or vbn layers whose statistics are unknown.
    """
    parts = network.layers
    if any(layer.kind == "graph" for layer in parts.layers):
        raise UserError(f"{network.name} has a graph layer, which ONNX does not have, expected the format npz")
    graph = _Graph()
    x = graph.input("observation", np.dtype(network.observations or parts.dtype), parts.shape)
    if network.normalizer is not None:
        mean, std = (each.reshape(parts.shape) for each in (network.normalizer.mean, network.normalizer.std))
        x = graph.add("Div", graph.add("Sub", graph.cast(x, np.float64), mean), std)
        x = graph.add("Clip", x, np.float64(-CLIP), np.float64(CLIP))
    x = graph.cast(x, np.float32)
    if parts.dtype == "uint8":
        x = graph.add("Mul", x, np.float32(1 / 255))
    for layer in parts.layers:
        x = _ADD.get(layer.kind, _add_simple)(graph, layer, x)
    graph.output("outputs", graph.add("Flatten", x, axis=1), parts.outputs)
    return graph.model(network)


class _Graph:
    """Builder of an ONNX graph. Tensors are referenced by name."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def add(self, kind: str, *inputs: str | np.ndarray | np.generic, outputs: int = 1, **attributes: Any) -> Any:
        """Add an operator; return the name of its output, or a list of names if it has several.

        Args:
            kind: The operator.
            *inputs: Names of tensors, or arrays of weights.
            outputs: Number of outputs of the operator.
            **attributes: Attributes of the operator.
        """
        number = len(self._nodes)
        names = [f"{kind.lower()}_{number}{f'_{each}' if outputs > 1 else ''}" for each in range(outputs)]
        given = [each if isinstance(each, str) else self._weight(np.asarray(each)) for each in inputs]
        self._nodes.append(helper.make_node(kind, given, names, **attributes))
        return names if outputs > 1 else names[0]

    def cast(self, x: str, dtype: type) -> str:
        """Add a conversion to a dtype; return the name of its output."""
        return self.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def input(self, name: str, dtype: np.dtype, shape: tuple[int, ...]) -> str:
        """Add an input of the model of shape [K, *shape]; return its name."""
        self._inputs.append(_info(name, dtype, shape))
        return name

    def output(self, name: str, x: str, size: int) -> None:
        """Make a tensor, float32 [K, size], an output of the model."""
        self._nodes.append(helper.make_node("Identity", [x], [name]))
        self._outputs.append(_info(name, np.dtype(np.float32), (size,)))

    def model(self, network: Exported) -> onnx.ModelProto:
        """Build the model from the added nodes and check it."""
        outputs = sorted(self._outputs, key=lambda output: output.name != "outputs")  # before the states
        graph = helper.make_graph(self._nodes, network.name, self._inputs, outputs, self._weights)
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR, producer_name="neuroevo")
        model.doc_string = how_to_act(network)
        texts = {"env": network.env, "genome": json.dumps(to_json(network.genome)), "network": network.text}
        helper.set_model_props(model, texts)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _weight(self, array: np.ndarray) -> str:
        name = f"weight_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name


def _info(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), ["K", *shape])


def _add_windows(graph: _Graph, layer: Layer, x: str) -> str:
    """Add a convolution or pooling layer between transpositions."""
    weights: list[np.ndarray] = []
    attributes: dict[str, Any] = {"strides": [layer.stride] * 2}
    if layer.kernel is not None:
        weights.append(layer.kernel.transpose(3, 2, 0, 1))
        if layer.bias is not None:
            weights.append(layer.bias)
    else:
        attributes["kernel_shape"] = layer.window
    if layer.padding == "same":  # explicit pads, since ONNX Runtime's auto_pad rejects windows narrower than the stride
        window = layer.window if layer.kernel is None else layer.kernel.shape[:2]
        starts = [(side - 1) // layer.stride * layer.stride for side in layer.shape[:2]]  # of the last windows
        sides = zip(layer.shape, starts, window, strict=False)
        pads = [max(0, start + width - side) for side, start, width in sides]
        attributes["pads"] = [pad // 2 for pad in pads] + [(pad + 1) // 2 for pad in pads]
    kind = {"conv": "Conv", "max_pool": "MaxPool", "avg_pool": "AveragePool"}[layer.kind]
    x = graph.add(kind, graph.add("Transpose", x, perm=_TRANSPOSED), *weights, **attributes)
    return graph.add("Transpose", x, perm=np.argsort(_TRANSPOSED).tolist())


def _add_dense(graph: _Graph, layer: Layer, x: str) -> str:
    assert layer.kernel is not None
    x = graph.add("MatMul", graph.add("Flatten", x, axis=1), layer.kernel)
    return x if layer.bias is None else graph.add("Add", x, layer.bias)


def _add_lstm(graph: _Graph, layer: Layer, x: str) -> str:
    """Add an lstm layer, whose h and c are inputs and outputs of the model."""
    assert layer.kernel is not None and layer.recurrent_kernel is not None and layer.bias is not None
    units = len(layer.recurrent_kernel)
    h, c = (graph.input(f"{layer.name}_{part}", np.dtype(np.float32), (units,)) for part in ("h", "c"))
    gates = graph.add("MatMul", graph.add("Flatten", x, axis=1), layer.kernel)
    gates = graph.add("Add", graph.add("Add", gates, graph.add("MatMul", h, layer.recurrent_kernel)), layer.bias)
    i, f, g, o = graph.add("Split", gates, outputs=4, axis=1, num_outputs=4)
    kept = graph.add("Mul", graph.add("Sigmoid", f), c)
    c = graph.add("Add", kept, graph.add("Mul", graph.add("Sigmoid", i), graph.add("Tanh", g)))
    h = graph.add("Mul", graph.add("Sigmoid", o), graph.add("Tanh", c))
    graph.output(f"{layer.name}_h_next", h, units)
    graph.output(f"{layer.name}_c_next", c, units)
    return h


def _add_layer_norm(graph: _Graph, layer: Layer, x: str) -> str:
    last = np.array([-1])
    x = graph.add("Sub", x, graph.add("ReduceMean", x, last))
    variance = graph.add("ReduceMean", graph.add("Mul", x, x), last)
    return graph.add("Div", x, graph.add("Sqrt", graph.add("Add", variance, np.float32(_EPSILON))))


def _add_vbn(graph: _Graph, layer: Layer, x: str) -> str:
    assert layer.mean is not None and layer.factor is not None
    return graph.add("Mul", graph.add("Sub", x, layer.mean), layer.factor)


def _add_simple(graph: _Graph, layer: Layer, x: str) -> str:
    """Add a bias or an activation."""
    if layer.kind == "bias":
        assert layer.bias is not None
        return graph.add("Add", x, layer.bias)
    if layer.kind == "silu":
        return graph.add("Mul", x, graph.add("Sigmoid", x))
    if layer.kind == "gelu":
        return graph.add("Gelu", x, approximate="tanh")
    if layer.kind == "leaky_relu":
        return graph.add("LeakyRelu", x, alpha=layer.slope)
    return graph.add({"relu": "Relu", "tanh": "Tanh"}[layer.kind], x)


_ADD = {
    "conv": _add_windows,
    "max_pool": _add_windows,
    "avg_pool": _add_windows,
    "dense": _add_dense,
    "lstm": _add_lstm,
    "layer_norm": _add_layer_norm,
    "vbn": _add_vbn,
}
