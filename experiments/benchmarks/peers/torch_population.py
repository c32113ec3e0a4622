"""A population of different networks in PyTorch playing in EnvPool, as users would implement it without neuroevo.

    python torch_population.py {grouped,unfold,threads} {model,large_model,large_model_lstm} GAME NETWORKS THREADS

Three ways to evaluate N networks at once, all float32:
  grouped   convolutions with N groups, batched matrix products
  unfold    patches as columns (im2col), then batched matrix products throughout
  threads   each thread has an EnvPool of its own and evaluates its networks one after another, without a barrier

Asked for a number of seconds (see serve.py), it answers frames_per_s of the whole rollout (four emulator frames a step)
and network_us, the wall time of the networks' share of one step (of N steps, divided by N, times the threads).
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (torch's own name for it)
from pools import FRAME_SKIP, make_envpool
from serve import serve

# (filters, kernel side, stride), then the units of the hidden layer and of a recurrent cell behind it, or 0.
NETWORKS = {
    "model": ([(16, 8, 4), (32, 4, 2)], 256, 0),
    "large_model": ([(32, 8, 4), (64, 4, 2), (64, 3, 1)], 512, 0),
    "large_model_lstm": ([(32, 8, 4), (64, 4, 2), (64, 3, 1)], 512, 256),
}


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after, so that the output has ceil(size / stride) pixels."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class Population:
    """N networks with random weights. paddings: of each convolution, as F.pad takes them."""

    def __init__(self, network: str, count: int, actions: int):
        convolutions, hidden, units = NETWORKS[network]
        generator = torch.Generator().manual_seed(0)

        def weights(*shape: int, fan_in: int, std: float = 1.0) -> torch.Tensor:
            return torch.randn(count, *shape, generator=generator) * (std / fan_in**0.5)

        self.count, self.strides = count, [stride for _, _, stride in convolutions]
        self.kernels, self.paddings = [], []
        size, channels = 84, 4
        for filters, side, stride in convolutions:
            self.kernels.append(weights(filters, channels, side, side, fan_in=channels * side * side))
            self.paddings.append(same_padding(size, side, stride) * 2)
            size, channels = -(-size // stride), filters
        features = size * size * channels
        self.dense = weights(features, hidden, fan_in=features)
        self.output = weights(units or hidden, actions, fan_in=units or hidden, std=0.1)
        self.units = units
        if units:
            self.cell = weights(hidden + units, 4 * units, fan_in=hidden + units)
            self.bias = torch.zeros(count, 4 * units)
            self.h, self.c = torch.zeros(count, units), torch.zeros(count, units)

    def features(self, images: torch.Tensor, way: str) -> torch.Tensor:
        """float32 [N, features] of images float32 [N, 4, 84, 84], image n through network n."""
        x = images
        for kernel, padding, stride in zip(self.kernels, self.paddings, self.strides, strict=True):
            x = F.pad(x, padding)
            if way == "grouped":
                merged = x.reshape(1, -1, *x.shape[2:])
                y = F.conv2d(merged, kernel.reshape(-1, *kernel.shape[2:]), stride=stride, groups=self.count)
                x = y.reshape(self.count, kernel.shape[1], *y.shape[2:])
            else:
                side = (x.shape[-1] - kernel.shape[-1]) // stride + 1
                columns = F.unfold(x, kernel.shape[-2:], stride=stride)  # [N, channels * kernel, pixels]
                x = torch.bmm(kernel.flatten(2), columns).reshape(self.count, kernel.shape[1], side, side)
            x = F.relu_(x)
        return x.flatten(1)

    def actions(self, observations: np.ndarray, way: str) -> np.ndarray:
        """int32 [N] of observations uint8 [N, 4, 84, 84]."""
        x = self.features(torch.from_numpy(observations).float().div_(255), way)
        x = F.relu_(torch.bmm(x[:, None], self.dense))
        if self.units:
            gates = torch.bmm(torch.cat([x, self.h[:, None]], -1), self.cell)[:, 0] + self.bias
            self.h, self.c = _remembered(gates, self.c)
            x = self.h[:, None]
        return torch.bmm(x, self.output)[:, 0].argmax(-1).numpy().astype(np.int32)

    def action(self, index: int, observation: torch.Tensor) -> int:
        """Return the action of one network on an observation uint8 [1, 4, 84, 84]."""
        x = observation.float().div_(255)
        for kernel, padding, stride in zip(self.kernels, self.paddings, self.strides, strict=True):
            x = F.relu_(F.conv2d(F.pad(x, padding), kernel[index], stride=stride))
        x = F.relu_(x.flatten(1) @ self.dense[index])
        if self.units:
            gates = torch.cat([x, self.h[index : index + 1]], -1) @ self.cell[index] + self.bias[index]
            x, self.c[index] = _remembered(gates, self.c[index])
            self.h[index] = x
        return int((x @ self.output[index]).argmax())


def _remembered(gates: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """h and c of an LSTM's cell; an episode's end does not clear them here, which costs torch nothing."""
    i, f, g, o = gates.chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@torch.inference_mode()
def rollout(population: Population, pool: object, way: str, observations: np.ndarray, seconds: float) -> dict:
    """Play for a while; also return the last observations, with which the next call continues."""
    steps, network, began = 0, 0.0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        start = time.perf_counter()
        if way == "threads":
            images = torch.from_numpy(observations)
            actions = np.array([population.action(i, images[i : i + 1]) for i in range(population.count)], np.int32)
        else:
            actions = population.actions(observations, way)
        network += time.perf_counter() - start
        observations = pool.step(actions)[0]
        steps += population.count
    return {"steps": steps, "network": network, "seconds": time.perf_counter() - began, "observations": observations}


def serve_rollouts(make: Callable[[int, int], Any], way: str, game: str, networks: int, threads: int) -> None:
    """Play on request, with a thread, an EnvPool and a population per thread if the way has no barrier.

    make(n, actions): a population of n networks, which answers actions(observations, way) as Population does.
    """
    groups = threads if way.startswith("threads") else 1
    torch.set_num_threads(threads // groups)
    pools = [make_envpool(game, networks // groups, threads // groups) for _ in range(groups)]
    populations = [make(networks // groups, pool.action_space.n) for pool in pools]
    observations = [pool.reset()[0] for pool in pools]

    def measure(seconds: float) -> dict[str, object]:
        with ThreadPoolExecutor(groups) as executor:
            jobs = [
                executor.submit(rollout, population, pool, way, seen, seconds)
                for population, pool, seen in zip(populations, pools, observations, strict=True)
            ]
            played = [job.result() for job in jobs]
        observations[:] = [each["observations"] for each in played]
        rate = sum(each["steps"] / each["seconds"] for each in played)
        network_us = 1e6 * sum(each["network"] for each in played) / sum(each["steps"] for each in played)
        return {"frames_per_s": FRAME_SKIP * rate, "network_us": network_us * (threads // groups)}

    measure(1.0)
    serve(measure)


def main() -> None:
    way, network, game = sys.argv[1:4]
    make = functools.partial(Population, network)
    serve_rollouts(make, way, game, int(sys.argv[4]), int(sys.argv[5]))


if __name__ == "__main__":
    main()
