"""Section `emulator` of `make bench`, and the measured programs as processes that measure on request.

    python -m experiments.benchmarks.emulator {wheel,neuroevo,ale} GAME

For a number of seconds (see programs.Program) they return {"frames_per_s": frames per second of processor time}.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import Program, in_turns, median_ratio

GAMES = (
    *("frostbite", "breakout", "pong", "seaquest", "space_invaders", "ms_pacman", "qbert", "enduro"),
    *("gravitar", "kangaroo", "venture", "zaxxon", "atlantis", "amidar", "montezuma_revenge", "freeway"),
)
_SIDES = ("neuroevo", "ale", "wheel")
_FRAME_SKIP = 4
_SLOTS = 8
_console = Console(width=120, highlight=False)


def emulator(seconds: float, rounds: int, threads: int) -> dict[str, Any]:  # noqa: ARG001
    """Measure emulator frames per second of processor time on one core, four per step, random actions, on 16 games.

    neuroevo and ale: environments on one thread with our chips and with ALE's, compiled alike, observation [84, 84, 4]
    made. wheel: the emulator of the ale-py wheel alone, which makes no observation.
    """
    results: dict[str, Any] = {}
    table = Table("game", *_SIDES, "of ale", "of the wheel", title="emulator, one core")
    for game in GAMES:
        with ExitStack() as stack:
            measurements = {}
            for side in _SIDES:
                command = [sys.executable, "-m", "experiments.benchmarks.emulator", side, game]
                program = stack.enter_context(Program(command))
                measurements[side] = lambda program=program: program.measure(seconds)["frames_per_s"]
            found = in_turns(measurements, rounds)
        row = {side: statistics.median(values) for side, values in found.items()}
        row |= {f"of_{side}": median_ratio(found["neuroevo"], found[side]) for side in _SIDES[1:]}
        results[game] = {**row, "rounds": found}
        rates = (f"{row[side]:,.0f}" for side in _SIDES)
        table.add_row(game, *rates, f"{row['of_ale']:.2f} x", f"{row['of_wheel']:.2f} x")
    for side in _SIDES[1:]:
        ratios = [results[game][f"of_{side}"] for game in GAMES]
        results[f"geometric_mean_of_{side}"] = float(np.exp(np.mean(np.log(ratios))))
    _console.print(table)
    means = " and ".join(f"{results[f'geometric_mean_of_{side}']:.2f} x {side}" for side in _SIDES[1:])
    _console.print(f"geometric means: {means}")
    return results


def _wheel(game: str) -> Callable[[], int]:
    """Return a function that plays a few steps in the wheel's emulator and returns the number of frames."""
    from ale_py import ALEInterface, LoggerMode, roms

    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", 0)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(str(roms.get_rom_path(game)))
    actions, rng = ale.getMinimalActionSet(), np.random.default_rng(0)

    def play() -> int:
        for index in rng.integers(len(actions), size=32):
            for _ in range(_FRAME_SKIP):
                ale.act(actions[index])
            if ale.game_over():
                ale.reset_game()
        return 32 * _FRAME_SKIP

    return play


def _ours(game: str, chips: str) -> Callable[[], int]:
    """Return a function that steps environments on one thread and returns the number of frames."""
    from neuroevo.envs.vector import make_vec

    env = make_vec(game, _SLOTS, num_threads=1, emulator=chips)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    actions = env.single_action_space.n

    def play() -> int:
        for _ in range(4):
            env.step(rng.integers(actions, size=_SLOTS))
        return 4 * _SLOTS * _FRAME_SKIP

    return play


def main() -> None:
    side, game = sys.argv[1:]
    play = _wheel(game) if side == "wheel" else _ours(game, side)
    print("ready", flush=True)
    for line in sys.stdin:
        frames, began, ends = 0, time.process_time(), time.perf_counter() + float(line)
        while time.perf_counter() < ends:
            frames += play()
        print(json.dumps({"frames_per_s": frames / (time.process_time() - began)}), flush=True)


if __name__ == "__main__":
    main()
