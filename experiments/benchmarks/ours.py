"""neuroevo's measurements as a process that measures on request (see programs.Program).

    python -m experiments.benchmarks.ours {env,replay,rollout,network,generations,memory,update} '{"option": ...}'

For a number of seconds it returns: env and rollout, the output of `neuroevo bench`; replay, see replay.py; network,
{"network_us": ...}, a thread's time to evaluate one network while all threads do, each slot with a different row as in
a rollout; generations, the rate of a GA's generations; memory and update ignore the seconds and return the memory of a
process, and the cost of an algorithm's update.
"""

from __future__ import annotations

import ctypes
import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from neuroevo.benchmarks import rates
from neuroevo.rollout.tensorflow_import import load_tensorflow


def main() -> None:
    what, options = sys.argv[1], json.loads(sys.argv[2])
    known = {"env": env, "replay": replay, "rollout": rollout, "network": network}
    known |= {"generations": generations, "memory": memory, "update": update}
    measure = known[what](**options)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(float(line))), flush=True)


def env(**options: Any) -> Callable[[float], dict[str, Any]]:
    """Step environments through the TensorFlow ops; see benchmarks.env_rate.env for the options."""
    load_tensorflow()
    from neuroevo.benchmarks import env_rate

    return lambda seconds: env_rate.env(seconds=seconds, **options)


def replay(**options: Any) -> Callable[[float], dict[str, Any]]:
    """Play recorded actions through the TensorFlow ops; see replay.replay for the options."""
    load_tensorflow()
    from experiments.benchmarks import replay

    measure = replay.replay(**options)
    measure(1.0)
    return measure


def rollout(**options: Any) -> Callable[[float], dict[str, Any]]:
    """Play random genomes, a different one per episode; see benchmarks.rates.rollout for the options."""
    return lambda seconds: rates.rollout(seconds=seconds, **options)


def generations(threads: int) -> Callable[[float], dict[str, Any]]:
    """Continue a GA run for two generations, including their test episodes; the seconds are ignored."""
    from neuroevo.config.load import load_config
    from neuroevo.sessions.evaluators import make_evaluator
    from neuroevo.training.loop import train

    overrides = ["algorithm.population=200", "algorithm.validation_candidates=5", "training.validation_episodes=20"]
    overrides += ["training.test_episodes=100", "training.max_episode_steps=1000", f"hardware.threads={threads}"]
    config = load_config("frostbite_ga", overrides)
    evaluator, state, wanted = make_evaluator(config), None, 0

    def measure(_: float) -> dict[str, Any]:
        nonlocal state, wanted
        wanted += 2
        training = replace(config.training, generations=wanted)
        before, cpu, began, played = evaluator.work(), time.process_time(), time.perf_counter(), 0
        for after_each, records in train(config.algorithm, evaluator, training, state):
            state, played = after_each, played + len(records)
        after, cpu, wall = evaluator.work(), time.process_time() - cpu, time.perf_counter() - began
        busy, steps = after.busy_seconds - before.busy_seconds, after.steps - before.steps
        return {
            "generations": played,
            "steps_per_s": steps / wall,
            "idle_share": 1 - busy / (threads * wall),
            **rates.outside(cpu, busy, steps),
        }

    return measure


def memory(population: int) -> Callable[[float], dict[str, Any]]:
    """Measure the memory after two generations of a GA with this number of genomes, which play one step each."""
    from neuroevo.config.load import load_config
    from neuroevo.sessions.evaluators import make_evaluator
    from neuroevo.training.loop import train

    overrides = [f"algorithm.population={population}", "training.max_episode_steps=1", "training.generations=2"]
    overrides += ["training.total_steps=1_000_000", "training.test_episodes=0", "training.validation_episodes=1"]
    config = load_config("frostbite_ga", overrides)

    def measure(_: float) -> dict[str, Any]:
        evaluator = make_evaluator(config)
        generations = len(list(train(config.algorithm, evaluator, config.training)))
        found = {"resident_mb": rates.resident_mb(), "generations": generations}
        evaluator.close()
        return found

    return measure


def update(algorithm: str, population: int, threads: int) -> Callable[[float], dict[str, Any]]:
    """Measure an algorithm's second update of LargeModel: its seconds, and the growth of the process."""
    from neuroevo.algorithms.base import EvaluatedPopulation
    from neuroevo.algorithms.registry import ALGORITHMS
    from neuroevo.native import library
    from neuroevo.native.weights import NativeWeights

    library.set_threads(threads)
    found = ALGORITHMS[algorithm](population=population)  # the first state lacks moments and standard deviations
    weights = NativeWeights([_text("large_model", 18)])
    fitness, before = np.random.default_rng(0).standard_normal(population), rates.resident_mb()
    state = found.init(0)
    told = found.tell(state, EvaluatedPopulation(found.ask(state, weights), fitness), weights)
    candidates = found.candidates(told)
    state = found.tell_validation(told, EvaluatedPopulation(candidates, fitness[: len(candidates)]))
    genomes = found.ask(state, weights)

    def measure(_: float) -> dict[str, Any]:
        began = time.perf_counter()
        found.tell(state, EvaluatedPopulation(genomes, fitness), weights)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024e-6 - before}

    return measure


def _text(network: str, actions: int) -> str:
    from neuroevo.networks.architectures import input_line, to_text
    from neuroevo.networks.network import named

    return to_text(named(network).lines(input_line("uint8", (84, 84, 4)), actions, False))


def network(game: str, network: str, threads: int, dtype: str, slots: bool = True) -> Callable[[float], dict[str, Any]]:
    """Evaluate networks on the observations of consecutive steps of random play, without environments.

    slots: Whether to pass slots, so that networks can reuse a slot's last screen, as in a rollout.
    """
    from neuroevo.envs import registry
    from neuroevo.native import library
    from neuroevo.native.env_pool import EnvPool
    from neuroevo.native.population import Population

    observations = observations_of(game, 64, slots=1, apart=1)
    actions = EnvPool(registry.resolve(game), 1).num_actions
    library.set_threads(threads)  # each thread of this process runs its own measurement
    population = Population([_text(network, actions)], threads, dtype=dtype)
    population.init(range(threads), [0] * threads, range(threads))
    population.clear_states(range(threads))
    forward = library.core().neuroevo_population_forward  # without the checks of native.Population at each call

    def evaluate(row: int, end: float, calls: list[int]) -> None:
        rows, out = np.array([row]), np.zeros(actions, np.float32)
        pointers = [ctypes.c_void_p(observation.ctypes.data) for observation in observations]
        to_rows, to_out = ctypes.c_void_p(rows.ctypes.data), ctypes.c_void_p(out.ctypes.data)
        to_slots = to_rows if slots else None
        while time.perf_counter() < end:
            for pointer in pointers:
                forward(population._handle, to_rows, ctypes.c_int64(1), pointer, to_out, to_slots)
            calls[row] += len(pointers)

    def measure(seconds: float) -> dict[str, Any]:
        calls, began = [0] * threads, time.perf_counter()
        workers = [threading.Thread(target=evaluate, args=(row, began + seconds, calls)) for row in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return {"network_us": 1e6 * threads * (time.perf_counter() - began) / sum(calls)}

    measure(0.5)
    return measure


def observations_of(game: str, count: int, slots: int = 8, apart: int = 10) -> np.ndarray:
    """Return observations of random play in some slots, `apart` steps apart, uint8 [count, 84, 84, 4]."""
    from neuroevo.envs import registry
    from neuroevo.native.env_pool import EnvPool

    pool, rng, seen = EnvPool(registry.resolve(game), slots), np.random.default_rng(0), []
    all_slots = np.arange(slots)
    pool.reset(all_slots, all_slots, np.zeros(slots))
    while len(seen) * slots < count:
        for _ in range(apart):
            _, dones = pool.step(all_slots, rng.integers(pool.num_actions, size=slots))
            if dones.any():
                pool.reset(all_slots[dones], all_slots[dones], np.zeros(dones.sum()))
        seen.append(pool.observe(all_slots))
    return np.concatenate(seen)[:count]


if __name__ == "__main__":
    main()
