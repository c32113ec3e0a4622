"""Lanes of simulators on JAX's devices, and what the host does between runs of their program (program.py).

With several devices each has its own lanes, stock and episodes and runs the loop on its own, by shard_map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from neuroevo.accelerated.networks import Forward
from neuroevo.accelerated.program import run, stock_up
from neuroevo.accelerated.program_state import NO_EPISODE, Stock, first_state
from neuroevo.accelerated.simulator import Simulator

_STOCK = 256  # episodes at least: to stock up takes some milliseconds, however few there are
_AXIS = "devices"
_EACH = PartitionSpec(_AXIS)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class FinishedEpisodes:
    """What the host learns of a run of the program.

    Attributes:
        episode: Numbers of the episodes that ended, int64 [E].
        steps: Theirs, int64 [E].
        returns: float64 [E].
        sums: float64 [E, 2n].
        failed: bool [E].
        lane_steps: Steps of lanes with an episode.
        all_lane_steps: Steps of all lanes.
    """

    episode: np.ndarray
    steps: np.ndarray
    returns: np.ndarray
    sums: np.ndarray
    failed: np.ndarray
    lane_steps: int
    all_lane_steps: int


@dataclass(frozen=True)
class Look:
    """States of simulators, as the host sees them.

    Attributes:
        played: The number of the episode whose state a lane has, int32 [L], or NO_EPISODE.
        over: Whether that is over, or there is none, bool [L].
        now: What was asked for of the lanes' states, arrays [L, ...].
        stocked: Likewise of the stock, [F], those that have begun included.
        start: What was asked for of its states, the episodes' first, arrays [F, ...].
    """

    played: np.ndarray
    over: np.ndarray
    now: Any
    stocked: np.ndarray
    start: Any


class Lanes:
    """The compiled program of one simulator and one network, and its state.

    Attributes:
        lanes: L, of all devices.
        stock: F, of all devices.
        devices: How many there are.
        in_stock: How many episodes each of them has in its stock, int64 [devices].
    """

    def __init__(
        self,
        simulator: Simulator,
        forward: Forward,
        dimension: int,
        *,
        lanes: int,
        devices: list[Any],
        steps: int,
        normalized: bool,
    ):
        """Compiles nothing yet: the first stock_up() and run() do.

        Args:
            simulator: What is played.
            forward: The network; of an observation to an action.
            dimension: D.
            lanes: L, a multiple of the number of devices.
            devices: JAX's.
            steps: After how many steps the program returns.
            normalized: Whether networks see observations normalized, and observations are added up.
        """
        self.lanes, self.devices, self.normalized = lanes, len(devices), normalized
        mesh = Mesh(np.array(devices), (_AXIS,))
        self._sharded = NamedSharding(mesh, _EACH)
        self._steps = np.full(len(devices), steps, np.int32)
        programs = _compiled(simulator, forward, mesh)  # type: ignore[arg-type] # it is hashable
        self._stock_up, self._run = programs
        numbers = 2 * simulator.observation_size if normalized else 0
        self.stock = lanes * -(-_STOCK // lanes)
        make = partial(first_state, simulator.state, dimension, lanes, self.stock, len(devices), numbers)
        self._state = jax.jit(make, out_shardings=self._sharded)()  # one program instead of a hundred small ones
        self.in_stock: np.ndarray = np.zeros(self.devices, np.int64)
        self._stocked: np.ndarray = self.in_stock

    def stock_up(self, renew: np.ndarray, keys: np.ndarray, stock: Stock) -> None:
        """Reset simulators for new episodes.

        Args:
            renew: Which devices get a new stock, bool [devices]; the others must have nothing to take.
            keys: Of the episodes' random numbers, uint32 [F, 2]; the first F / devices are the first device's.
            stock: The rest; NO_EPISODE, at the end of a device's, where there are fewer.
        """
        put = partial(jax.device_put, device=self._sharded)
        self._state = self._stock_up(self._state, put(renew), put(keys), Stock(*map(put, stock)))
        counts = (stock.episode.reshape(self.devices, -1) != NO_EPISODE).sum(1)
        self._stocked = np.where(renew, counts, self._stocked)
        self.in_stock = np.where(renew, counts, self.in_stock)

    def run(self, more: np.ndarray) -> FinishedEpisodes:
        """Plays until the stock of a device with more episodes is empty, or for some steps.

        Args:
            more: Whether a device has more episodes than its stock, bool [devices].
        """
        self._state, ended, work = self._run(self._state, *jax.device_put((more, self._steps), self._sharded))
        ended, work, taken = jax.device_get((ended, work, self._state.taken))
        self.in_stock = self._stocked - taken
        own = np.concatenate(
            [
                device * len(ended.episode) // self.devices + np.arange(count)
                for device, count in enumerate(ended.number)
            ]
        )
        score = ended.score
        return FinishedEpisodes(
            ended.episode[own].astype(np.int64),
            score.steps[own].astype(np.int64),
            score.returns[own].astype(np.float64).sum(-1),
            score.sums[own].astype(np.float64).sum(-1),
            score.failed[own],
            int(work[:, 0].sum()),
            int(work[:, 1].sum()),
        )

    def look(self, what: Callable[[Any], Any]) -> Look:
        """Copy an attribute of all states to the host.

        Args:
            what: The part of a simulator's state.
        """
        playing, idle, _, stock, _ = self._state
        seen = playing.episode, idle, what(playing.simulation), stock.episode, what(stock.simulation)
        return Look(*jax.device_get(seen))


@lru_cache(maxsize=8)  # evaluators of the same environment and network share what was compiled
def _compiled(simulator: Any, forward: Forward, mesh: Mesh) -> tuple[Any, Any]:
    """Functions of stock_up() and run() for all devices."""

    def compiled(program: Any) -> Any:
        each = jax.shard_map(program, mesh=mesh, in_specs=_EACH, out_specs=_EACH, check_vma=False)
        return jax.jit(each, donate_argnums=0)

    return compiled(partial(stock_up, simulator)), compiled(partial(run, simulator, forward))
