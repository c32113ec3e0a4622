"""Gymnasium environments with unusual spaces, and with everything that can go wrong.

The module registers them for gymnasium.make("tests.support.gymnasium_toys:ToyDict-v0").
"""

from __future__ import annotations

import copy
import fcntl
import os
import random
import signal
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces


class Toy(gymnasium.Env):
    """Environment with samples of the observation space as observations, random rewards and random ends."""

    observation_space: spaces.Space = spaces.Box(-1, 1, (3,), np.float32)
    action_space: spaces.Space = spaces.Discrete(3)

    def __init__(self, mean: float = 0.0):
        self.mean = mean
        self.observation_space = copy.deepcopy(self.observation_space)  # with a separate generator

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observe(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        reward = self.mean + self.np_random.normal() + float(np.sum(action))
        return self.observe(), reward, self.np_random.random() < 0.05, False, {}

    def observe(self):
        return self.observation_space.sample()


class ToyInfo(Toy):
    """Environment with an info, in which one number is not finite after the first step."""

    def step(self, action):
        self.height = 1.0 if self.height == 0 else np.nan
        return self.observe(), 1.0, False, False, {"height": self.height, "name": "toy"}

    def reset(self, *, seed=None, options=None):
        self.height = 0.0
        return super().reset(seed=seed)


class ToyDict(Toy):
    """Environment with a Dict space of three kinds, which flatten() converts to float64."""

    observation_space = spaces.Dict(
        {"b": spaces.Discrete(4, start=2), "a": spaces.Box(-2, 2, (2, 3), np.float32), "c": spaces.MultiBinary(3)}
    )
    action_space = spaces.Discrete(3, start=-1)


class ToyTuple(Toy):
    """Environment with a Tuple space of small integers."""

    observation_space = spaces.Tuple((spaces.MultiDiscrete([3, 2]), spaces.Box(-9, 9, (2,), np.int16)))
    action_space = spaces.MultiDiscrete([3, 1, 2], start=[0, 5, -1])


class ToyImage(Toy):
    """Environment with a small image, which it can also render: upside down, or in gray, with optional frame rate."""

    observation_space = spaces.Box(0, 255, (4, 5, 3), np.uint8)
    action_space = spaces.MultiBinary([2, 2])
    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}

    def __init__(self, render_mode=None, gray=False, fps=30):
        super().__init__()
        self.render_mode, self.gray = render_mode, gray
        self.metadata = {**self.metadata, "render_fps": fps}

    def observe(self):
        self.seen = super().observe()
        return self.seen

    def render(self):
        return self.seen[::-1, :, 0] if self.gray else self.seen[::-1]


class ToyHalf(Toy):
    """Environment with a scalar float16 observation."""

    observation_space = spaces.Box(-4, 4, (), np.float16)
    action_space = spaces.Box(np.array([[-1, -2]]), np.array([[1, np.inf]]), dtype=np.float64)


class ToyLong(Toy):
    """Environment with integers that do not fit into 32 bits."""

    observation_space = spaces.Box(0, 2**40, (2,), np.int64)


class ToyGraph(Toy):
    """Environment with a Graph space, which has no fixed length."""

    observation_space = spaces.Graph(spaces.Box(-1, 1, (2,)), None)


class ToyIntegerBox(Toy):
    """Environment with integer vectors as actions."""

    action_space = spaces.Box(0, 3, (2,), np.int32)


class ToyManyChoices(Toy):
    """Environment with more combinations of actions than a network has outputs."""

    action_space = spaces.MultiBinary(64)


class ToyGlobal(Toy):
    """Environment that incorrectly uses the process's global random generators."""

    def observe(self):
        return np.array([random.random(), np.random.rand(), 0], np.float32)


class ToyWithoutEnd(Toy):
    """Environment whose episodes never end."""

    def step(self, action):
        return self.observe(), 1.0, False, False, {}


class ToyTired(Toy):
    """Environment that fails to reset after this number of episodes; with hang, the reset hangs."""

    def __init__(self, episodes: int, hang: bool = False):
        super().__init__()
        self.left, self.hang = episodes, hang

    def reset(self, *, seed=None, options=None):
        self.left -= 1
        if self.left < 0:
            self.give_up()
        return super().reset(seed=seed)

    def give_up(self):
        if self.hang:
            time.sleep(1000)
        raise OverflowError("tired\nof it all")


class ToyTrouble(Toy):
    """Environment that does `what` in step `at` of an episode, at the reset (0), or when it is made (-1)."""

    def __init__(self, what: str, at: int = 2):
        super().__init__()
        self.what, self.at, self.steps, self.result = what, at, 0, None
        self.trouble(-1)

    def reset(self, *, seed=None, options=None):
        first, info = super().reset(seed=seed)
        self.steps, self.result = 0, (first, 1.0)
        self.trouble(0)
        return self.result[0], info

    def step(self, action):
        self.steps += 1
        self.result = (self.observe(), 1.0)
        self.trouble(self.steps)
        return *self.result, False, False, {}

    def trouble(self, now):
        if now != self.at:
            return
        observation = np.zeros(3, np.float32)
        if self.what == "raise":
            raise ValueError("the toy broke; grün \ud800")
        if self.what == "raise at length":
            raise ValueError("the toy broke" + "x" * 5_000_000)
        if self.what == "exit":
            sys.exit(3)
        if self.what == "die":
            os._exit(4)
        if self.what == "hang":
            time.sleep(1000)
        if self.what == "hold":  # the interpreter's lock, so that no other thread and no handler runs
            sum(range(10**13))
        if self.what == "print":
            print("printed by the toy", flush=True)
            os.write(1, b"written by the toy\n")
        if self.what == "read":
            self.result = (observation, float(len(sys.stdin.read())))
        if self.what == "nan reward":
            self.result = (observation, np.nan)
        if self.what == "nan observation":
            self.result = (np.array([0, np.nan, 0], np.float32), 1.0)
        if self.what == "wrong shape":
            self.result = (np.zeros(4, np.float32), 1.0)
        if self.what == "no reward":
            self.result = (observation, None)


class ToyUnlucky(Toy):
    """Environment that does `what` in step `at` of an episode (0: the reset), once per byte of the file in UNLUCKY.

    Each time removes a byte. Episodes have 30 steps. "chance": the observations differ each time.
    """

    def __init__(self, what: str = "raise", at: int = 5):
        super().__init__()
        self.what, self.at, self.steps = what, at, 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        first = super().reset(seed=seed)
        self.trouble()
        return first

    def step(self, action):
        self.steps += 1
        observation, reward, *_ = super().step(action)
        self.trouble()
        return observation, reward, self.steps == 30, False, {}

    def observe(self):
        seen = super().observe()
        if self.what == "chance":
            seen[0] = int.from_bytes(os.urandom(2), "little") / 2**16
        return seen

    def trouble(self):
        if self.steps != self.at:
            return
        with Path(os.environ["UNLUCKY"]).open("r+b") as left:
            fcntl.flock(left, fcntl.LOCK_EX)  # two workers that come here at once are not to take the same byte
            if not (count := os.fstat(left.fileno()).st_size):
                return
            left.truncate(count - 1)
        if self.what == "leave a child":  # which has the socket, too
            if os.fork() == 0:
                os.closerange(1, 3)  # those that others wait for
                time.sleep(15)
                os._exit(0)
            os._exit(4)
        if self.what == "be killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.what == "hang":
            time.sleep(1000)
        raise OSError("Too many open files")


class ToyKiller(Toy):
    """Environment that kills its process in about one of `of` episodes."""

    def __init__(self, of: int = 10):
        super().__init__()
        self.of = of

    def reset(self, *, seed=None, options=None):
        if seed is not None and seed % self.of == 1:
            os.kill(os.getppid(), signal.SIGKILL)
        return super().reset(seed=seed)


class ToyPaced(Toy):
    """Environment whose reset takes a number of seconds as long as a file exists."""

    def __init__(self, file: str, seconds: float = 1.0):
        super().__init__()
        self.file, self.seconds = Path(file), seconds

    def reset(self, *, seed=None, options=None):
        if self.file.exists():
            time.sleep(self.seconds)
        return super().reset(seed=seed)


for toy in (ToyInfo, ToyDict, ToyTuple, ToyImage, ToyHalf, ToyLong, ToyGraph, ToyIntegerBox, ToyManyChoices, ToyGlobal):
    gymnasium.register(f"{toy.__name__}-v0", toy, max_episode_steps=40)
gymnasium.register("ToyWithoutEnd-v0", ToyWithoutEnd)
gymnasium.register("ToyUnlucky-v0", ToyUnlucky, max_episode_steps=40, disable_env_checker=True)
gymnasium.register("ToyPaced-v0", ToyPaced, max_episode_steps=40)
gymnasium.register("ToyKiller-v0", ToyKiller, max_episode_steps=40)
gymnasium.register("ToyTired-v0", ToyTired, max_episode_steps=5)
gymnasium.register("ToyTrouble-v0", ToyTrouble, max_episode_steps=40, disable_env_checker=True)
