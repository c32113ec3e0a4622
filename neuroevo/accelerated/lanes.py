"""Lanes of simulators on JAX's devices, and the host's part between calls of the compiled program (program.py).

Each device has its own lanes, stock and episodes and runs the loop independently, by shard_map.
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

_STOCK = 256  # least number of episodes in stock: stock_up() takes some milliseconds however few they are
_AXIS = "devices"
_EACH = PartitionSpec(_AXIS)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class FinishedEpisodes:
    """Results of one call of the program.

    Attributes:
        episode: Numbers of the episodes that ended, int64 [E].
        steps: Length of each in steps, int64 [E].
        returns: Return of each, float64 [E].
        sums: Sums of observations and of their squares, float64 [E, 2n], or [E, 0].
        failed: Whether each failed, bool [E]; see Score.
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
    """Copy of part of the simulators' states on the host.

    Attributes:
        played: Number of the episode in each lane, int32 [L], or NO_EPISODE.
        over: Whether the lane is idle: its episode is finished or it has none, bool [L].
        now: The selected part of the lanes' states, arrays [L, ...].
        stocked: Numbers of the episodes in stock, int32 [F], including those that have started.
        start: The selected part of the initial states of the episodes in stock, arrays [F, ...].
    """

    played: np.ndarray
    over: np.ndarray
    now: Any
    stocked: np.ndarray
    start: Any


class Lanes:
    """Compiled program of one simulator and one network, and its state.

    Attributes:
        lanes: Number of lanes of all devices, L.
        stock: Number of episodes that the stocks of all devices hold, F.
        devices: Number of devices.
        in_stock: Number of episodes in each device's stock that have not started, int64 [devices].
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
        """Allocate the state; the programs are compiled at the first stock_up() and run().

        Args:
            simulator: The environment.
            forward: The network, as a function of theta and an observation to an action.
            dimension: Number of weights, D.
            lanes: Number of lanes, L, a multiple of the number of devices.
            devices: The JAX devices.
            steps: Number of steps after which the program returns.
            normalized: Whether to normalize observations and to accumulate their sums.
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
            renew: Whether each device gets a new stock, bool [devices]; the stocks of these must be empty.
            keys: Random key of each episode, uint32 [F, 2]; the first F / devices are the first device's.
            stock: The episodes; a device with fewer has NO_EPISODE at the end of its part.
        """
        put = partial(jax.device_put, device=self._sharded)
        self._state = self._stock_up(self._state, put(renew), put(keys), Stock(*map(put, stock)))
        counts = (stock.episode.reshape(self.devices, -1) != NO_EPISODE).sum(1)
        self._stocked = np.where(renew, counts, self._stocked)
        self.in_stock = np.where(renew, counts, self.in_stock)

    def run(self, more: np.ndarray) -> FinishedEpisodes:
        """Play until the stock of a device with more episodes is empty, or for the number of steps.

        Args:
            more: Whether each device has more episodes than those in its stock, bool [devices].
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
        """Copy part of all states to the host.

        Args:
            what: Function that selects the part of a simulator's state.
        """
        playing, idle, _, stock, _ = self._state
        seen = playing.episode, idle, what(playing.simulation), stock.episode, what(stock.simulation)
        return Look(*jax.device_get(seen))


@lru_cache(maxsize=8)  # evaluators of the same environment and network share what was compiled
def _compiled(simulator: Any, forward: Forward, mesh: Mesh) -> tuple[Any, Any]:
    """Return the compiled stock_up() and run() for all devices."""

    def compiled(program: Any) -> Any:
        each = jax.shard_map(program, mesh=mesh, in_specs=_EACH, out_specs=_EACH, check_vma=False)
        return jax.jit(each, donate_argnums=0)

    return compiled(partial(stock_up, simulator)), compiled(partial(run, simulator, forward))
