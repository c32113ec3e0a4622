"""The checkpoints of a run: when one is written, which old ones stay, and which one a resumed run starts from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroevo.config.schema import CheckpointSettings, Config
from neuroevo.core.errors import UserError
from neuroevo.envs import registry
from neuroevo.runs.checkpoint import Checkpoint, CheckpointError, load, save
from neuroevo.training.loop import TrainState

_NAME = re.compile(r"generation-(\d+)\.ckpt")


@dataclass(frozen=True)
class Unusable:
    """A checkpoint that was passed over, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path} {self.reason}"


class Checkpoints:
    """The files generation-NNNNNN.ckpt in a folder; N generations are finished in each."""

    def __init__(self, folder: Path, settings: CheckpointSettings):
        self.folder = folder
        self._settings = settings
        self._saved: TrainState | None = None  # of the last one that was saved here

    def path(self, generation: int) -> Path:
        """Where the checkpoint after `generation` finished generations is."""
        return self.folder / f"generation-{generation:06d}.ckpt"

    def due(self, generation: int) -> bool:
        """Whether one is to be written after `generation` finished generations."""
        return generation % self._settings.every == 0

    def save(self, checkpoint: Checkpoint) -> None:
        """Writes it unless it was the last one written, and then deletes those that need not stay. OSError."""
        if checkpoint.state is self._saved:
            return
        generation = checkpoint.state.generation
        self.folder.mkdir(exist_ok=True)
        save(self.path(generation), checkpoint)
        self._saved = checkpoint.state
        # The newest elite on record is that of the newest tested generation, whose checkpoint is the last to count.
        tested = generation - len(checkpoint.state.untested)
        so_far = [each for each in self.generations() if each <= tested]
        for old in so_far[: -self._settings.keep_last]:
            if not (self._settings.keep_every and old % self._settings.keep_every == 0):
                self.path(old).unlink(missing_ok=True)

    def generations(self) -> list[int]:
        """Numbers of finished generations that there are checkpoints of, in order."""
        return generations(self.folder)

    def newest(
        self, state_kind: type, origin: Mapping[str, Any], check: Callable[[Checkpoint], None] = lambda _: None
    ) -> tuple[Checkpoint | None, list[Unusable]]:
        """The newest checkpoint that this run can go on from (None: there is none), and the newer ones passed over.

        check: raises ValueError for one that cannot be used for a reason of the caller's.
        """
        while True:
            generations, unusable = self.generations(), []
            for generation in reversed(generations):
                try:
                    checkpoint = self.load(generation, state_kind, origin)
                    check(checkpoint)
                    return checkpoint, unusable
                except ValueError as error:  # CheckpointError is one
                    unusable.append(Unusable(self.path(generation), str(error)))
            # Meanwhile the run itself may have replaced what was there by newer ones.
            if set(generations) <= set(self.generations()):
                return None, unusable

    def load(self, generation: int, state_kind: type, origin: Mapping[str, Any]) -> Checkpoint:
        """The checkpoint after `generation` generations. CheckpointError: it cannot be used, or is another run's."""
        checkpoint = load(self.path(generation), state_kind)
        if checkpoint.state.generation != generation:
            raise CheckpointError(f"is of generation {checkpoint.state.generation}, not of {generation}")
        differences = _differences(checkpoint.origin, _as_json(origin))
        if differences:
            raise CheckpointError(f"is another run's: {'; '.join(differences)}")
        return checkpoint

    def check_file(self, config: Config) -> None:
        """UserError when a file that the environment is made from is not what it was when the run began.

        What the newest checkpoint of the run remembers counts; those of earlier versions remember the path alone.
        """
        if config.environment.file is None:
            return
        ours = _as_json(config.origin())
        for generation in reversed(self.generations()):
            try:
                checkpoint = self.load(generation, config.algorithm.state_type, ours)
            except CheckpointError:
                continue
            config.environment.check_file(_as_of_now(checkpoint.origin)["env"]["file"], self.folder.parent)
            return


def generations(folder: Path) -> list[int]:
    """Numbers of finished generations that a folder has checkpoints of, in order."""
    if not folder.is_dir():
        return []
    names = (_NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(name[1]) for name in names if name)


def set_aside(unusable: Unusable) -> Path:
    """Renames a checkpoint that cannot be used, so that it is neither taken for one nor overwritten; the new path."""
    number, path = 1, unusable.path.with_name(unusable.path.name + ".unusable")
    while path.exists():
        number += 1
        path = unusable.path.with_name(f"{unusable.path.name}.unusable-{number}")
    return unusable.path.rename(path)


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


# Keys that checkpoints of earlier versions lack, with what was the case then for those runs that have them.
_ADDED = {
    "network": {
        "dtype": "float32",
        "hidden": [256, 256],
        "activation": "tanh",
        "action_bins": 0,
        "normalize_observations": False,
    }
}


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """Which keys differ, as `algorithm.sigma is 0.005 there and 0.002 here`. What a file of the environment's holds is
    not compared: Checkpoints.check_file() does that for those who play."""
    theirs, found = _as_of_now(theirs), []
    for section in dict.fromkeys([*theirs, *ours]):
        there, here = theirs.get(section), ours.get(section)
        if not isinstance(there, Mapping) or not isinstance(here, Mapping):
            there, here = {"": there}, {"": here}
        there = {**{key: value for key, value in _ADDED.get(section, {}).items() if key in here}, **there}
        for key in dict.fromkeys([*there, *here]):
            if (section, key) == ("env", "file") and key in there and key in here:
                continue
            if there.get(key) != here.get(key):
                name = f"{section}.{key}".rstrip(".")
                found.append(f"{name} is {_shown(there, key)} there and {_shown(here, key)} here")
    return found


def _as_of_now(origin: Mapping[str, Any]) -> Mapping[str, Any]:
    """An origin without the options that checkpoints of earlier versions hold though results do not depend on them, and
    with what a file holds now in place of its path, which they had, also from the current folder."""
    env = origin.get("env")
    if not isinstance(env, Mapping) or "options" not in env:
        return origin
    known = registry.family_of(env["name"])
    if known is None:
        return origin
    try:
        env = {**env, **known[0].deciding(env["options"])}
    except UserError:  # the file is gone: a difference
        return origin
    return {**origin, "env": {key: value for key, value in env.items() if key != "options" or value}}


def _shown(table: Mapping[str, Any], key: str) -> str:
    return json.dumps(table[key]) if table.get(key) is not None else "not set"
