"""Lanes on the accelerator compared with a bare loop of Brax's step and with evosax, which ends no episode early."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import in_turns, median_ratio

_TASK, _STEPS = "hopper", 500
_RAW = ("hopper", "ant", "inverted_pendulum")  # tasks on which lanes are compared with bare loops
_WIDTH = 64  # number of parallel simulators
_POPULATION = 1024
_SIGMA = 0.05
_GENERATIONS = 15  # of training, after which the center can stand


def accelerated(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure Brax's robots on MJX. Raw: steps/s of our lanes, with resets and new networks as episodes end, against
    bare loops of Brax's step, without and with networks, which never reset; and of the C++ lanes with Brax's models.
    Useful steps/s: one population of Hoppers, one episode per genome, in our lanes and with evosax."""
    from neuroevo.accelerated.start import start_jax

    start_jax(threads)  # before Brax is imported
    from experiments.peers import rates
    from experiments.peers.same_network import network_of
    from experiments.peers.same_population import SamePopulation
    from neuroevo.accelerated.brax_simulator import shared_simulator
    from neuroevo.core.genome import Center, Genome

    experiment = _experiment(threads)
    network = network_of(experiment)
    found: dict[str, Any] = {"raw": {}}
    columns = "task", "ours, /s", "bare loop, /s", "ratio", "bare loop with networks, /s", "ratio", "C++ lanes, /s"
    table = Table(*columns, title=f"raw, {threads} devices, {_WIDTH} lanes")
    for task in _RAW:
        simulator = shared_simulator(task, experiment.backend)
        measure = {
            "ours": rates.lanes(simulator, network, _WIDTH, threads),
            "bare": rates.bare(simulator, _WIDTH, threads),
            "with networks": rates.bare(simulator, _WIDTH, threads, network),
            "C++ lanes": partial(_native_rate, replace(experiment, task=task)),
        }
        for rate in measure.values():
            rate(seconds)  # the first seconds after compiling are slower
        found["raw"][task] = raw = in_turns({n: lambda rate=r: rate(2 * seconds) for n, r in measure.items()}, rounds)
        ours, bare, networks, native = raw.values()
        table.add_row(task, *_cells(ours, bare), *_cells(ours, networks)[1:], f"{np.median(native):,.0f}")
    Console(width=120, highlight=False).print(table)
    columns = "population", "mean steps", "neuroevo, /s", "evosax, /s", "ratio", "useful share, neuroevo and evosax"
    table = Table(*columns, title=f"{_TASK}, {threads} devices, {_WIDTH} lanes")
    both = SamePopulation(experiment, _WIDTH)
    with tempfile.TemporaryDirectory() as folder:
        centers = {"fresh": Genome(0), "trained": _trained(Path(folder))}
    for name, center in centers.items():
        if center.mutations or not isinstance(center.root, Center):
            center = Genome(Center(both.theta(center)))
        genomes = [
            center.child(seed // 2, float(np.float32(_SIGMA)) * (1 - seed % 2 * 2)) for seed in range(_POPULATION)
        ]
        who = {"ours": lambda own=genomes: both.ours(own), "evosax": lambda own=genomes: both.evosax(own)}
        for each in who.values():
            each()  # compiles
        found[name] = rows = in_turns(who, rounds)
        useful = {key: [row["useful_per_s"] for row in own] for key, own in rows.items()}
        steps = " and ".join(f"{own[0]['mean_steps']:.0f}" for own in rows.values())
        shares = " and ".join(f"{own[0]['useful_share']:.2f}" for own in rows.values())
        table.add_row(f"{_POPULATION:,} around a {name} center, and evosax", steps, *_cells(*useful.values()), shares)
    Console(width=120, highlight=False).print(table)
    return found


def _native_rate(experiment: Any, seconds: float) -> float:
    from experiments.peers.native import lane_rate

    with tempfile.TemporaryDirectory() as models:
        return lane_rate(experiment, _WIDTH, seconds, Path(models), brax_model=True)


def _cells(ours: list[float], theirs: list[float]) -> list[str]:
    return [f"{np.median(ours):,.0f}", f"{np.median(theirs):,.0f}", f"{median_ratio(ours, theirs):.2f}"]


def _experiment(devices: int) -> Any:
    from experiments.peers.experiment import Experiment

    return Experiment(_TASK, "mjx", 1, 64, _SIGMA, 0.05, (32, 32), False, _STEPS, _GENERATIONS, 4, devices)


def _trained(folder: Path) -> Any:
    """Return the center of a strategy that was trained on our C++ lanes with Brax's model and transfers to Brax."""
    from experiments.peers import native
    from neuroevo.analysis.run import train

    run = train(native.configuration(_experiment(1), folder, brax_model=True), out=folder / "run")
    return run.elite()[1].genome
