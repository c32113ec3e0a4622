"""An Atari game played in parallel in the env pool and in the ale-py wheel; the first difference is an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import ale_py
import numpy as np

from neuroevo.core.env_spec import EnvSpec
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from tests.support.atari_reference import KEPT_SCREENS, GymnasiumEnv, ReferenceEnv, emulator

SLOTS = 2  # used in turns, so that episodes start in used slots
CUTOFFS = [6001, 0, 1203, 7002]  # frames per episode; most are not multiples of a frame skip
SEEN_EVERY = 8  # steps between checks of screen or observation where the other check is equivalent
FIRST_RAM_ADDRESS = 0x80
SIDE = 84  # side of an observation
# A game that thinks leaves a frame unfinished, and for some frames ALE draws no other. The protocol of 2018 then shows
# the last screen with the last one that was finished before, which is as many frames older; with ALE's chips, too.
LEAVE_FRAMES_UNFINISHED = ["tic_tac_toe_3d", "video_checkers", "video_chess"]
# Of which ale-py does not bring back all by a snapshot: three begin in the middle of a frame, and the fourth's settings
# load their numbers as others than they saved.
NEED_FRESH_EMULATORS = ["amidar", "qbert", "tetris", "miniature_golf", *LEAVE_FRAMES_UNFINISHED]

Reference = ReferenceEnv | GymnasiumEnv
# Function from the game so far to an action; all randomness comes from the generator.
Player = Callable[[Reference, np.random.Generator], int]


class RandomPlayer:
    """Player with random actions, in some episodes a new one for each step, in others held for a while."""

    def __init__(self) -> None:
        self._seed, self._action, self._new = None, 0, 1.0

    def __call__(self, reference: Reference, rng: np.random.Generator) -> int:
        if reference.seed != self._seed:  # an episode begins
            self._seed, self._new = reference.seed, rng.choice([1.0, 0.25, 0.05])
        if rng.random() < self._new:
            self._action = int(rng.integers(len(reference.actions)))
        return self._action


class LookingAhead:
    """Player that tries a few actions in a separate emulator, each held for a while before another, and plays the best.

    It reaches states that random play does not: FIRE that starts, ladders that are climbed, levels that are finished.
    Its emulator resumes from snapshots, which omit parts of a game's state; this can only make it play worse.
    """

    HOLD, TRIES, LIFE = 24, 5, 1000  # frames for which an action is held; number of candidates; value of a life

    def __init__(self, game: str, frame_skip: int, **loaded: Any) -> None:
        self._ahead, self._steps = emulator(game, **loaded), max(1, self.HOLD // frame_skip)
        self._action, self._left = 0, 0

    def __call__(self, reference: Reference, rng: np.random.Generator) -> int:
        if self._left == 0:
            start, count = reference.ale.cloneState(), len(reference.actions)
            firsts = rng.permutation(count)[: self.TRIES]
            values = [self._value(reference, start, [int(first), int(rng.integers(count))]) for first in firsts]
            self._action, self._left = int(firsts[int(np.argmax(values))]), self._steps
        self._left -= 1
        return self._action

    def _value(self, reference: Reference, start: ale_py.ALEState, actions: list[int]) -> float:
        self._ahead.restoreState(start)
        lives, value = self._ahead.lives(), 0.0
        for action in actions:
            for _ in range(self.HOLD):
                value += self._ahead.act(reference.actions[action])
        return value - self.LIFE * (lives - self._ahead.lives()) - self.LIFE * self._ahead.game_over()


class _Beside:
    """The pool and its reference, with comparisons of what both show."""

    def __init__(self, game: str, options: Mapping[str, Any]) -> None:
        options = dict(options)
        self.gymnasium = options.pop("protocol", "uber") == "gymnasium"
        loaded = {key: options.pop(key) for key in ("mode", "difficulty") if key in options}
        sticky = options.pop("repeat_action_probability", 0.0)
        # The first episodes of each kind have new emulators; all episodes do if a screen of the start may be visible.
        fresh = math.inf if options.get("noop_max") == 0 or game in NEED_FRESH_EMULATORS else len(CUTOFFS)
        if self.gymnasium:
            self.reference = GymnasiumEnv(game, fresh, **options, loaded={"sticky": sticky, **loaded})
        else:
            self.reference = ReferenceEnv(game, fresh, **options, sticky=sticky, **loaded)
        self._befores = range(1, KEPT_SCREENS if game in LEAVE_FRAMES_UNFINISHED else 2)
        self._columns = _Resize(160)
        self._rows = _Resize(self.reference.ale.getScreenDims()[0])

    def observation_differs(self, shown: np.ndarray, expected: np.ndarray | None) -> str | None:
        """Compare an observation, uint8 [84, 84, 4], with the expected one, or without it with the last two screens.

        In that case only the newest frame is compared, with weights in 1/128 of a gray level.
        """
        if expected is not None:
            return None if _same(shown, expected) else f"observation {_first('pixel', shown, expected)}"
        for before in self._befores:
            newest = self._rows(self._columns(self.reference.gray(before).T).T)
            wrong = np.abs(shown[..., 3] - newest) >= 0.5 + 2 / 128
            if not wrong.any():
                return None
        return f"newest frame observed {_first('pixel', shown[..., 3], newest, wrong)}"

    def memory_differs(self, ram: np.ndarray) -> str | None:
        """Compare the RAM, uint8 [128]."""
        expected = self.reference.ale.getRAM()
        return None if _same(ram, expected) else f"RAM {_first('address', ram, expected, offset=FIRST_RAM_ADDRESS)}"

    def screen_differs(self, screen: np.ndarray) -> str | None:
        """Compare the screen, uint8 [height, 160, 3]."""
        expected = self.reference.ale.getScreenRGB()
        return None if _same(screen, expected) else f"screen {_first('pixel', screen, expected)}"


class _Resize:
    """Bilinear resize of an axis, [size, N] -> [84, N], with aligned corners."""

    def __init__(self, size: int) -> None:
        at = np.arange(SIDE) * (size - 1) / (SIDE - 1)
        self._low = np.minimum(at.astype(int), size - 2)
        self._weight = (at - self._low)[:, None]

    def __call__(self, image: np.ndarray) -> np.ndarray:
        low = image[self._low]
        return low + (image[self._low + 1] - low) * self._weight


def _same(left: np.ndarray, right: np.ndarray) -> bool:
    """Return whether arrays of bytes are equal, faster than np.array_equal."""
    if left.shape != right.shape:
        return False
    left, right = np.ascontiguousarray(left).reshape(-1), np.ascontiguousarray(right).reshape(-1)
    whole = left.size // 8 * 8
    words = left[:whole].view(np.uint64) == right[:whole].view(np.uint64)
    return bool(words.all()) and left[whole:].tolist() == right[whole:].tolist()


def _first(
    what: str, actual: np.ndarray, expected: np.ndarray, wrong: np.ndarray | None = None, offset: int = 0
) -> str:
    """Describe the first difference of arrays and the number of differences."""
    if actual.shape != expected.shape:
        return f"has the shape {actual.shape}, expected {expected.shape}"
    wrong = actual != expected if wrong is None else wrong
    place = tuple(int(index[0]) for index in np.nonzero(wrong))
    where = hex(place[0] + offset) if len(place) == 1 else str(list(place))
    which = f"{wrong.sum()} of {wrong.size} differ"
    return f"differs at {what} {where}: {actual[place]}, expected {expected[place]} ({which})"


def compare(game: str, options: Mapping[str, Any], seed: int, frames: int, player: Player | None = None) -> int:
    """Play at least this many frames, several episodes; options and their defaults are those of the Atari family.

    After each step it compares the reward, the end of the episode, the RAM, the screen and the observation. With the
    protocol "gymnasium" the screen is compared every SEEN_EVERY steps, so that most screens are checked by the
    observation alone; with steps of one frame the observation is, since both of its screens were compared.

    Returns:
        The number of frames played; 0 for a game that is over before it begins.

    Raises:
        AssertionError: Something differs; the message says where.
    """
    rng, player = np.random.default_rng(seed), player or RandomPlayer()
    spec: EnvSpec = registry.resolve(game, dict(options))
    pool, beside = EnvPool(spec, SLOTS), _Beside(game, options)
    reference = beside.reference
    assert pool.num_actions == len(reference.actions), f"{game}: {pool.num_actions} actions"
    played, episode, done = 0, -1, True
    if reference.ale.game_over():  # as in Demon Attack's modes for two players: only the start can be compared
        pool.reset([0], [seed], [0])
        found = beside.memory_differs(pool.behavior([0])[0]) or beside.screen_differs(pool.render([0])[0])
        assert not found, f"{game}, {dict(options)}: the start: {found}"
        return 0
    while played < frames:
        if done:
            episode += 1
            episode_seed, max_frames = int(rng.integers(2**63)), CUTOFFS[episode % len(CUTOFFS)]
            slot, step, begun, rewards = np.array([episode % SLOTS]), 0, played, ([0.0], [False])
            pool.reset(slot, [episode_seed], [max_frames])
            observation = reference.reset(episode_seed, max_frames)
            first = reference.ale.getEpisodeFrameNumber()
            reward, done = 0.0, False
        else:
            action, step = player(reference, rng), step + 1
            rewards = pool.step(slot, [action])
            if beside.gymnasium:
                observation, reward, done = reference.step(action)
            else:
                reward, done = reference.step(action)
            played = begun + reference.ale.getEpisodeFrameNumber() - first
        found = None
        if (rewards[0][0], bool(rewards[1][0])) != (reward, done):
            found = f"reward and end are {rewards[0][0]}, {rewards[1][0]}, expected {reward}, {done}"
        found = found or beside.memory_differs(pool.behavior(slot)[0])
        now_and_then = done or step % SEEN_EVERY == 0
        if not beside.gymnasium or now_and_then:
            found = found or beside.screen_differs(pool.render(slot)[0])
        if pool.frame_skip > 1 or now_and_then:
            found = found or beside.observation_differs(pool.observe(slot)[0], observation)
        if found:
            raise AssertionError(
                f"{game}, seed {seed}, {dict(options)}: frame {played} of all, {played - begun} of episode {episode} "
                f"(seed {episode_seed}, max_frames {max_frames}, slot {slot[0]}): {found}"
            )
    return played
