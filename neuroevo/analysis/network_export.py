"""Export an elite as a network that works without neuroevo, or as a genome file, from which neuroevo rebuilds it.

genome       one .toml file of seeds and the run's configuration: runs/genome_file.py
keras        one .keras file of built-in layers only, for keras.models.load_model
savedmodel   a folder for tf.saved_model.load, serving engines and converters; signature "serving_default"
onnx         one .onnx file, for onnxruntime and other programs that read ONNX
npz          arrays for numpy.load:
             - `conv_1.kernel`, `conv_1.bias`, and so on for every layer; an lstm layer also has
               `lstm_1.recurrent_kernel`, with the gates i, f, g and o concatenated; a vbn layer, which computes
               (x - mean) * factor, has `vbn_1.mean` and `vbn_1.factor`; a graph layer (NEAT), which only this format
               supports, has `graph_1.edges`, int64 [E, 2], the source and target node of each edge
             - strings: `network` (the layer list, see custom_ops/networks/network.h), `dtype`, `genome` (JSON), `env`
             - for a run in int8 also the integer weights: `conv_1.kernel_int8` and `conv_1.exponent` (k of
               custom_ops/networks/int8)
             - for normalized observations: `normalizer.mean` and `normalizer.std`
             - for continuous actions: `action_low`, `action_high` and `action_bins` (B, or 0)

A network that played in int8 is exported with the float32 weights from which the integers were rounded: its outputs are
close to those of the run, and it chooses a different action in a few percent of the steps. The arrays of an npz file
suffice to reproduce the run's actions exactly.

The input is a batch of unprocessed observations (uint8 [K, 84, 84, 4] for Atari, float64 [K, n] for MuJoCo); the
exported network includes their normalization. The output is float32 [K, A], and the action is the index of the largest
output. If actions are vectors of A numbers, each number is low + (clip(output, -1, 1) + 1) / 2 * (high - low), or the
output itself if its bounds are not finite. With B bins per number the output is [K, A * B]; if b is the index of the
largest of a number's B outputs, the number is low + b * (high - low) / (B - 1).

A recurrent network also has, for each lstm layer, inputs `lstm_1_h` and `lstm_1_c`, float32 [K, units], and outputs of
the same names: the state, which is zeros at the start of an episode and then the output of the previous step. A Keras
model takes and returns dictionaries, {"observation": ..., "lstm_1_h": ..., ...} and {"outputs": ..., ...}. An ONNX
model, whose tensor names must be unique, calls these outputs `lstm_1_h_next` and `lstm_1_c_next`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.analysis.exported_network import Exported, elite_network
from neuroevo.analysis.keras_model import to_keras
from neuroevo.core.errors import UserError
from neuroevo.core.extras import require
from neuroevo.core.genome import to_json
from neuroevo.networks.quantization import quantized
from neuroevo.runs.genome_file import SUFFIX, genome_text
from neuroevo.runs.reader import RunReader
from neuroevo.system.files import written_aside


def to_arrays(network: Exported) -> dict[str, np.ndarray]:
    """Return the network as the named arrays listed in the module's docstring; strings are 0-dimensional arrays.

    Raises:
        UserError: The network has vbn layers whose statistics are unknown.
    """
    arrays = {
        f"{layer.name}.{what}": array
        for layer in network.layers.layers
        for what in ("kernel", "recurrent_kernel", "bias", "mean", "factor", "edges")
        if (array := getattr(layer, what)) is not None
    }
    if network.dtype == "int8":
        for layer in network.layers.layers:
            if layer.kernel is not None:
                arrays[f"{layer.name}.kernel_int8"], exponent = quantized(layer.kernel)
                arrays[f"{layer.name}.exponent"] = np.array(exponent, np.int32)
    if network.normalizer is not None:
        arrays |= {"normalizer.mean": network.normalizer.mean, "normalizer.std": network.normalizer.std}
    if network.action_low is not None:
        arrays |= {"action_low": network.action_low, "action_high": network.action_high}
        arrays["action_bins"] = np.array(network.action_bins, np.int32)
    texts = {
        "network": network.text,
        "dtype": network.dtype,
        "genome": json.dumps(to_json(network.genome)),
        "env": network.env,
    }
    return {**arrays, **{name: np.array(text) for name, text in texts.items()}}


def _save_keras(network: Exported, path: Path) -> None:
    to_keras(network).save(path)


def _save_savedmodel(network: Exported, path: Path) -> None:
    to_keras(network).export(path, format="tf_saved_model", verbose=False)


def _save_onnx(network: Exported, path: Path) -> None:
    require("onnx", "onnx")
    from neuroevo.analysis.onnx_model import to_onnx

    path.write_bytes(to_onnx(network).SerializeToString())


def _save_npz(network: Exported, path: Path) -> None:
    arrays: dict[str, Any] = to_arrays(network)  # Any, since NumPy types the keyword arguments together with a flag
    np.savez(path, **arrays)


@dataclass(frozen=True)
class Format:
    """Export format.

    Attributes:
        suffix: Suffix of the file name; "" for a folder.
        mark: A file that identifies a folder of this format; None if the format is a single file.
        save: Function that writes a network to a path that does not exist yet.
    """

    suffix: str
    mark: str | None
    save: Callable[[Exported, Path], None]


FORMATS = {
    "keras": Format(".keras", None, _save_keras),
    "savedmodel": Format("", "saved_model.pb", _save_savedmodel),
    "onnx": Format(".onnx", None, _save_onnx),
    "npz": Format(".npz", None, _save_npz),
}


GENOME = "genome"
SUFFIXES = {**{name: each.suffix for name, each in FORMATS.items()}, GENOME: SUFFIX}


def format_of(path: Path) -> str:
    """Return the name of the format with the suffix of a path.

    Raises:
        UserError: No format has this suffix.
    """
    for name, suffix in SUFFIXES.items():
        if path.suffix == suffix:
            return name
    raise UserError(
        f"path is {path}, expected one of the endings {', '.join(each or 'none' for each in SUFFIXES.values())}"
    )


def export(reader: RunReader, generation: int | None, path: Path, form: str, *, force: bool) -> Exported:
    """Write an elite to a file, or for savedmodel to a folder.

    Args:
        reader: The run.
        generation: The elite's generation; None for the last finished one.
        path: The file or folder to write.
        form: The name of the format.
        force: Replace an existing file or folder.

    Returns:
        The exported network.

    Raises:
        UserError: The format is unknown, the path has a different suffix, it exists and `force` is False, the
            generation does not exist, its weights are not stored, or the elite cannot be written in this format.
    """
    if form not in SUFFIXES:
        raise UserError(f"format is '{form}', expected one of {', '.join(SUFFIXES)}")
    if path.suffix != SUFFIXES[form] and SUFFIXES[form]:
        raise UserError(f"path is {path}, expected a name that ends in {SUFFIXES[form]}, as the format is {form}")
    generation, elite = reader.elite(generation)
    batch = reader.reference_batch()
    network = elite_network(reader.config, elite, generation, batch)
    if form == GENOME:
        text = genome_text(reader.config, generation, elite.genome, elite.normalizer, batch)
        with written_aside(path, force) as aside:
            aside.write_text(text)
        return network
    with written_aside(path, force, FORMATS[form].mark) as aside:
        FORMATS[form].save(network, aside)
    return network
