"""A population of different networks on a GPU in PyTorch and JAX, as users would implement it without neuroevo.

A single file, since it is copied to machines without neuroevo.

    python gpu_population.py [--ways torch_unfold,...] [--networks 256,1024] [--seconds S] [--json FILE]
    python gpu_population.py --check FILE.npz

LargeModel for N observations, uint8 on the device, by N networks: float32 throughout, TF32 off. The ways:
  torch_unfold           patches as columns (im2col), batched matrix products; replayed as a CUDA graph
  torch_unfold_compiled  the same through torch.compile, with CUDA graphs
  torch_vmap             torch.func.vmap of one network's forward pass through torch.compile, with CUDA graphs
  jax_vmap               jax.vmap of one network's forward pass, jitted
  jax_vmap_patches       the same with patches and matrix products instead of convolutions
Each way that can run here prints one JSON line a number of networks; one that cannot, a line that says why. Without a
GPU it runs on the CPU, to try the program. --check compares all ways' outputs with those in the file: thetas
[N, 4052658] as neuroevo lays them out, observations [N, 84, 84, 4], outputs [N, 18]; it fails beyond 1e-4 of the
largest output.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))  # filters, kernel side, stride; padding so that nothing is lost
_HIDDEN, _OUTPUTS = 512, 18
_SIDE, _CHANNELS = 84, 4
DIMENSION = 4_052_658
WAYS = ("torch_unfold", "torch_unfold_compiled", "torch_vmap", "jax_vmap", "jax_vmap_patches")


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return the zeros before and after, so that the output has ceil(size / stride) pixels."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def shapes() -> list[tuple[int, ...]]:
    """Return the shapes of weights in neuroevo's order: kernels [height, width, in, out], biases, dense [in, out]."""
    found: list[tuple[int, ...]] = []
    side, channels = _SIDE, _CHANNELS
    for filters, kernel, stride in _CONVOLUTIONS:
        found += [(kernel, kernel, channels, filters), (filters,)]
        side, channels = -(-side // stride), filters
    return [*found, (side * side * channels, _HIDDEN), (_HIDDEN,), (_HIDDEN, _OUTPUTS), (_OUTPUTS,)]


def split(thetas: Any) -> list[Any]:
    """Return views of thetas [N, D]: [N, *shape] for each of shapes()."""
    parts, at = [], 0
    for shape in shapes():
        size = math.prod(shape)
        parts.append(thetas[:, at : at + size].reshape(-1, *shape))
        at += size
    return parts


class Torch:
    """Implementations in PyTorch, with channels first."""

    def __init__(self, way: str):
        import torch

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        self._torch, self._way = torch, way
        self._on_gpu = torch.cuda.is_available()
        self._device = "cuda" if self._on_gpu else "cpu"
        self.device = torch.cuda.get_device_name() if self._on_gpu else "CPU"
        self.version = f"torch {torch.__version__}"

    def prepare(self, thetas: np.ndarray | None, observations: np.ndarray) -> Callable[[], Any]:
        """A call that evaluates everything once and returns outputs [N, 18] on the device."""
        torch, count = self._torch, len(observations)
        if thetas is None:  # each of its weights drawn on the device
            flat = torch.randn(count, DIMENSION, device=self._device).mul_(0.02)
        else:
            flat = torch.from_numpy(thetas).to(self._device)
        weights = []
        for part in split(flat):
            if part.dim() == 5:  # [N, h, w, in, out] -> [N, out, in, h, w]
                part = part.permute(0, 4, 3, 1, 2)
            elif part.dim() == 3 and part.shape[2] == _HIDDEN:  # rows from (h, w, c) to (c, h, w)
                side = math.isqrt(part.shape[1] // _CONVOLUTIONS[-1][0])
                part = part.reshape(count, side, side, -1, _HIDDEN).permute(0, 3, 1, 2, 4).reshape(count, -1, _HIDDEN)
            weights.append(part.contiguous())
        del flat
        images = torch.from_numpy(observations).to(self._device).permute(0, 3, 1, 2).contiguous()
        function = torch.func.vmap(self._one) if self._way == "torch_vmap" else self._unfold
        if self._way != "torch_unfold":
            function = torch.compile(function, mode="reduce-overhead" if self._on_gpu else None)
        elif self._on_gpu:
            return self._graph(lambda: function(images, *weights))
        return lambda: function(images, *weights)

    def seconds(self, call: Callable[[], Any], calls: int) -> float:
        """Seconds per call, of `calls` in a row."""
        torch = self._torch
        if not self._on_gpu:
            return _wall_seconds(call, calls)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3 / calls

    def numpy(self, outputs: Any) -> np.ndarray:
        """The outputs on the host."""
        return outputs.float().cpu().numpy()

    def _graph(self, call: Callable[[], Any]) -> Callable[[], Any]:
        torch = self._torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = call()

        def replay() -> Any:
            graph.replay()
            return outputs

        return replay

    def _pads(self) -> list[tuple[int, int, int, int]]:
        pads, side = [], _SIDE
        for _, kernel, stride in _CONVOLUTIONS:
            pads.append(same_padding(side, kernel, stride) * 2)
            side = -(-side // stride)
        return pads

    def _unfold(self, images: Any, *weights: Any) -> Any:
        torch, functional = self._torch, self._torch.nn.functional
        x = images.float() * (1 / 255)
        for i, (pads, (filters, kernel, stride)) in enumerate(zip(self._pads(), _CONVOLUTIONS, strict=True)):
            x = functional.pad(x, pads)
            side = (x.shape[-1] - kernel) // stride + 1
            columns = functional.unfold(x, (kernel, kernel), stride=stride)  # [N, in * kernel, pixels]
            y = torch.baddbmm(weights[2 * i + 1][:, :, None], weights[2 * i].flatten(2), columns)
            x = torch.relu(y).reshape(-1, filters, side, side)
        x = torch.relu(torch.baddbmm(weights[7][:, None], x.flatten(1)[:, None], weights[6]))
        return torch.baddbmm(weights[9][:, None], x, weights[8])[:, 0]

    def _one(self, image: Any, *weights: Any) -> Any:
        torch, functional = self._torch, self._torch.nn.functional
        x = image[None].float() * (1 / 255)
        for i, (pads, (_, _, stride)) in enumerate(zip(self._pads(), _CONVOLUTIONS, strict=True)):
            x = torch.relu(functional.conv2d(functional.pad(x, pads), weights[2 * i], weights[2 * i + 1], stride))
        x = torch.relu(x.flatten() @ weights[6] + weights[7])
        return x @ weights[8] + weights[9]


class Jax:
    """Implementations in JAX, with channels last as in neuroevo."""

    def __init__(self, way: str):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the GPU is shared
        import jax

        jax.config.update("jax_default_matmul_precision", "highest")
        self._jax, self._way = jax, way
        self.device = jax.devices()[0].device_kind
        self.version = f"jax {jax.__version__}"

    def prepare(self, thetas: np.ndarray | None, observations: np.ndarray) -> Callable[[], Any]:
        """A call that evaluates everything once and returns outputs [N, 18] on the device."""
        jax, count = self._jax, len(observations)
        if thetas is None:
            keys = jax.random.split(jax.random.key(0), len(shapes()))
            weights = [
                jax.random.normal(key, (count, *shape)) * 0.02 for key, shape in zip(keys, shapes(), strict=True)
            ]
        else:
            weights = [jax.numpy.asarray(part) for part in split(thetas)]
        images = jax.numpy.asarray(observations)
        function = jax.jit(jax.vmap(self._one))
        return lambda: function(images, *weights)

    def seconds(self, call: Callable[[], Any], calls: int) -> float:
        """Seconds per call, of `calls` in a row."""
        outputs: list[Any] = []
        start = time.perf_counter()
        for _ in range(calls):
            outputs = [call()]
        outputs[0].block_until_ready()
        return (time.perf_counter() - start) / calls

    def numpy(self, outputs: Any) -> np.ndarray:
        """The outputs on the host."""
        return np.asarray(outputs)

    def _one(self, image: Any, *weights: Any) -> Any:
        jax, jnp, lax = self._jax, self._jax.numpy, self._jax.lax
        x = image[None].astype(jnp.float32) * (1 / 255)
        for i, (filters, kernel, stride) in enumerate(_CONVOLUTIONS):
            if self._way == "jax_vmap":
                x = lax.conv_general_dilated(
                    x, weights[2 * i], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
            else:
                x = lax.conv_general_dilated_patches(
                    x, (kernel, kernel), (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )  # features in the order channel, height, width
                x = x @ weights[2 * i].transpose(2, 0, 1, 3).reshape(-1, filters)
            x = jax.nn.relu(x + weights[2 * i + 1])
        x = jax.nn.relu(x.reshape(-1) @ weights[6] + weights[7])
        return x @ weights[8] + weights[9]


def make(way: str) -> Torch | Jax:
    """Return the peer that implements a way."""
    return Torch(way) if way.startswith("torch") else Jax(way)


def measure(way: str, count: int, seconds: float) -> dict[str, Any]:
    """Measure the time of a call for `count` networks."""
    peer = make(way)
    observations = np.random.default_rng(1).integers(256, size=(count, _SIDE, _SIDE, _CHANNELS), dtype=np.uint8)
    call = peer.prepare(None, observations)
    for _ in range(3):
        once = peer.seconds(call, 1)
    calls = max(1, min(100, round(0.02 / once)))
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < 3 or time.perf_counter() < end:
        samples.append(peer.seconds(call, calls))
    median = statistics.median(samples)
    rate = count * DIMENSION * 4 / median * 1e-9
    return {"k": count, "queued_us": median * 1e6, "gb_s": rate, "device": peer.device, "version": peer.version}


def error(way: str, data: Any) -> float:
    """Return the largest difference from the outputs in the file, relative to the largest of these outputs."""
    peer = make(way)
    found = peer.numpy(peer.prepare(data["thetas"], data["observations"])())
    return float(np.abs(found - data["outputs"]).max() / np.abs(data["outputs"]).max())


def _wall_seconds(call: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def _finite(text: str) -> float:
    """Parse a finite number. Raise ValueError if it is invalid."""
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


def main() -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--networks", default="256,1024")
    parser.add_argument("--seconds", type=_finite, default=2.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", type=Path)
    arguments = parser.parse_args()

    def note(line: dict[str, Any]) -> None:
        text = json.dumps(line)
        print(text, flush=True)
        if arguments.json is not None:
            with arguments.json.open("a", encoding="utf-8") as file:
                file.write(text + "\n")

    wrong = 0
    for way in arguments.ways.split(","):
        if way not in WAYS:
            parser.error(f"way '{way}' is unknown, expected some of {', '.join(WAYS)}")
        try:
            if arguments.check is not None:
                found = error(way, np.load(arguments.check))
                wrong += not found <= 1e-4
                note({"figure": "peer_check", "peer": way, "relative_error": found})
                continue
            for count in map(int, arguments.networks.split(",")):
                note({"figure": "peer", "peer": way, **measure(way, count, arguments.seconds)})
        except Exception as problem:  # noqa: BLE001 (whatever another library throws: the other ways are to be measured)
            reason = " ".join(f"{type(problem).__name__}: {problem}".split())
            note({"figure": "peer_skipped", "peer": way, "reason": reason[:300]})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
