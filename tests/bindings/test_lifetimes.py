"""Native objects under threads, garbage collection, exits and forks.

The tests run scripts in separate processes, which a defect would crash.

NEUROEVO_TEST_ROUNDS=1000 repeats each script 1000 times.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from tests.support.runs import read_elites

ROUNDS = os.environ.get("NEUROEVO_TEST_ROUNDS", "1")
_SECONDS = 120 + int(ROUNDS)  # time limit; the scripts usually take a few seconds

_IMPORTS = """
import gc, os, sys, threading
import numpy as np
from neuroevo import make_vec
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.native.rollout import Rollout
from neuroevo.native.submission import pack
from neuroevo.networks.architectures import mlp, network_text

ROUNDS = int(sys.argv[1])

def make_env(count=4, **keywords):
    env = make_vec("frostbite", count, **keywords)
    env.reset(seed=0)
    return env, env.action_space.sample()

def make_rollout(lanes=2, slots=2, steps=5):
    pool = EnvPool(registry.resolve("hard_maze"), lanes * slots)
    text = network_text(mlp, pool.observation_dtype.name, pool.observation_shape, pool.num_actions)
    population = Population([text], lanes * slots)
    rollout = Rollout(pool, population, lanes=lanes, slots=slots)
    def episodes(count, first):
        packed = [Episode(Genome(7), seed, steps) for seed in range(count)]
        return pack(packed, frame_skip=pool.frame_skip, dimensions=population.dimensions, first_id=first)
    return pool, population, rollout, episodes
"""


def run(script: str) -> str:
    """Run a script, check that it ends with exit code 0, and return its output."""
    program = _IMPORTS + textwrap.dedent(script)
    ended = subprocess.run(
        [sys.executable, "-c", program, ROUNDS], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert ended.returncode == 0, f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def test_environments_are_closed_while_another_thread_steps():
    printed = run("""
        for _ in range(ROUNDS):
            env, actions = make_env(16, num_threads=2)
            stepped = threading.Event()
            def play():
                try:
                    while True:
                        env.step(actions)
                        stepped.set()
                except Exception as error:
                    print(type(error).__name__)
            thread = threading.Thread(target=play)
            thread.start()
            stepped.wait()
            env.close()
            thread.join()
    """)
    assert set(printed.split()) <= {"ClosedEnvironmentError", "ValueError"}
    assert len(printed.split()) == int(ROUNDS)


def test_two_threads_step_the_same_environments():
    printed = run("""
        env, actions = make_env(2)
        def play():
            for _ in range(500 * ROUNDS):
                try:
                    env.step(actions)
                except ValueError as error:
                    assert str(error) == "the environments are in use by another call", error
        threads = [threading.Thread(target=play) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(env.step(actions)[0].shape)
    """)
    assert printed.strip() == "(2, 84, 84, 4)"


@pytest.mark.parametrize("what", ["step", "results"])
def test_the_interpreter_exits_while_a_thread_is_in_a_call(what):
    script = f"""
        what = {what!r}
        env, actions = make_env(16, num_threads=2)
        pool, population, rollout, episodes = make_rollout(steps=100000)
        rollout.submit(episodes(100, 0))
        begun = threading.Event()
        def play():
            while True:
                if what == "results":
                    begun.set()
                    rollout.results(1000, 60)
                else:
                    env.step(actions)
                    begun.set()
        threading.Thread(target=play, daemon=True).start()
        begun.wait()
    """
    for _ in range(int(ROUNDS)):
        run(script)


def test_garbage_frees_a_rollout_and_its_parts_in_any_order():
    printed = run("""
        for round in range(10 * ROUNDS):
            parts = make_rollout(steps=100000)
            pool, population, rollout, episodes = parts
            rollout.submit(episodes(100, 0))
            pool.cycle = population.cycle = rollout
            rollout.cycle = pool, population
            del parts, pool, population, rollout, episodes
            gc.collect()
        print("done")
    """)
    assert printed.strip() == "done"


def test_threads_share_the_results_of_a_rollout():
    printed = run("""
        pool, population, rollout, episodes = make_rollout(slots=16, steps=1)
        total, given, submitted = 5000 * ROUNDS, [], threading.Event()
        def collect():
            while not (submitted.is_set() and ended.is_set()):
                given.extend(rollout.results().ids.tolist())
        ended = threading.Event()
        threads = [threading.Thread(target=collect) for _ in range(4)]
        for thread in threads: thread.start()
        for first in range(0, total, 500):
            rollout.submit(episodes(500, 10 * first))
        submitted.set()
        while rollout.total_steps < total:
            pass
        ended.set()
        for thread in threads: thread.join()
        given.extend(rollout.results().ids.tolist())
        rollout.close()
        print(len(given), len(set(given)))
    """)
    assert printed.split() == [str(5000 * int(ROUNDS))] * 2


_FORKS = """
def in_child(do):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            do()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert status == 0, status
"""


@pytest.mark.parametrize("threads", [None, 2])
def test_a_fork_closes_drops_and_leaves_environments(threads):
    printed = run(f"""{_FORKS}
env, actions = make_env(num_threads={threads})
def close(): env.close()
def drop():
    global env
    del env
    gc.collect()
def play():
    try:
        env.step(actions)
    except Exception as error:
        assert "a fork of the process that created the environments" in str(error), error
    own, its_actions = make_env(num_threads={threads})
    own.step(its_actions)
    own.close()
for _ in range(ROUNDS):
    env.step(actions)
    in_child(close)
    in_child(drop)
    in_child(play)
    child = os.fork()
    if child == 0:
        sys.exit(7)  # with all that Python does at its end
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
env.step(actions)
print("done")
""")
    assert printed.strip() == "done"


def test_a_fork_in_the_middle_of_calls():
    printed = run(f"""{_FORKS}
env, actions = make_env(num_threads=2)
waiting, _ = make_env(num_threads=2)
pool, population, rollout, episodes = make_rollout(steps=100)
def step():
    while not over:
        env.step(actions)
def make():
    while not over:
        make_env()
def end():
    env.close()
    waiting.close()
    rollout.close()
    try:
        rollout.results()
    except Exception as error:
        assert "belongs to the process that this one was forked from" in str(error), error
    own, own_actions = make_env(num_threads=2)
    own.step(own_actions)
    own.close()
    _, _, own_rollout, own_episodes = make_rollout()
    own_rollout.submit(own_episodes(9, 0))
    assert len(own_rollout.results(9, 60).ids) == 9
    own_rollout.close()
over, first = False, 0
threads = [threading.Thread(target=each) for each in (step, make)]
for thread in threads: thread.start()
for _ in range(5 * ROUNDS):
    rollout.submit(episodes(40, first))
    first += 1000
    in_child(end)
over = True
for thread in threads: thread.join()
rollout.close()
print("done")
""")
    assert printed.strip() == "done"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["native", pytest.param("tensorflow", marks=pytest.mark.thorough)])
def test_a_fork_of_a_training_run(engine, tmp_path):
    printed = run(f"""{_FORKS}
import neuroevo
def play():
    env, actions = make_env(2)
    env.step(actions)
    env.close()
for name, callbacks in ("forked", [lambda record: in_child(play)]), ("alone", []):
    changes = {{"hardware.engine": {engine!r}, "training.generations": 2 * ROUNDS}}
    neuroevo.train("smoke", changes, out={str(tmp_path)!r} + "/" + name, callbacks=callbacks)
""")
    elites = [read_elites(tmp_path / name) for name in ("forked", "alone")]
    assert elites[0] and elites[0] == elites[1], printed
