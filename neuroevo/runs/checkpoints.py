"""The checkpoints of a run: when one is written, which old ones stay, and which one a resumed run starts from."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroevo.config.schema import CheckpointSettings, Config
from neuroevo.runs.checkpoint import Checkpoint, CheckpointError, load, save
from neuroevo.runs.pickles import why_not
from neuroevo.system.appended_file import LostFile
from neuroevo.system.directory import Directory
from neuroevo.training.state import TrainState

_NAME = re.compile(r"generation-(\d+)\.ckpt")


@dataclass(frozen=True)
class Unusable:
    """A checkpoint that was passed over.

    Attributes:
        path: Its file.
        reason: Why it cannot be used, as the end of a sentence that begins with the path.
        unread: The disk's error, where that is why.
    """

    path: Path
    reason: str
    unread: OSError | None = None

    def __str__(self) -> str:
        return f"{self.path} {self.reason}"


class Checkpoints:
    """The files generation-NNNNNN.ckpt in a folder; N generations are finished in each.

    Attributes:
        folder: Where they are.
    """

    def __init__(self, folder: Path, settings: CheckpointSettings, trust: bool = False):
        """Writes nothing yet.

        Args:
            folder: Where the checkpoints are or will be.
            settings: How often they are written and which of them stay.
            trust: Whether one with a pickle is used whoever wrote it.
        """
        self.folder = folder
        self._settings, self._trust = settings, trust
        self._saved: TrainState | None = None  # of the last one that was saved here

    def path(self, generation: int) -> Path:
        """Names a checkpoint's file.

        Args:
            generation: Number of finished generations.

        Returns:
            Where the checkpoint is or would be.
        """
        return self.folder / f"generation-{generation:06d}.ckpt"

    def due(self, generation: int) -> bool:
        """Decides whether to write a checkpoint.

        Args:
            generation: Number of finished generations.

        Returns:
            Whether one is to be written now.
        """
        return generation % self._settings.every == 0

    def save(self, run: Directory, checkpoint: Checkpoint) -> None:
        """Writes a checkpoint unless it was the last one written, then deletes those that need not stay.

        Args:
            run: The run's folder.
            checkpoint: What to write.

        Raises:
            LostFile: Somebody has deleted the last one that was written; this one was written first.
            OSError: It cannot be written.
            UserError: The folder of checkpoints is a link.
        """
        if checkpoint.state is self._saved:
            return
        with run.below(self.folder.name, make=True) as folder:
            self._save(folder, checkpoint)

    def _save(self, folder: Directory, checkpoint: Checkpoint) -> None:
        generation, before = checkpoint.state.generation, self._saved
        gone = before is not None and folder.status(self.path(before.generation).name) is None
        save(folder, self.path(generation).name, checkpoint)
        self._saved = checkpoint.state
        if gone and before is not None:
            raise LostFile(
                f"{self.path(before.generation)} was deleted meanwhile; {self.path(generation)} is there instead"
            )
        self._delete_old(folder, checkpoint.state)

    def tidy(self, run: Directory, state: TrainState) -> None:
        """Deletes checkpoints that need not stay, where a kill came between writing the last one and that.

        Args:
            run: The run's folder.
            state: What the run goes on from.

        Raises:
            OSError: One cannot be deleted.
            UserError: The folder of checkpoints is a link.
        """
        with run.below(self.folder.name) as folder:
            self._delete_old(folder, state)

    def _delete_old(self, folder: Directory, state: TrainState) -> None:
        # Of the generations with a complete record, the newest one's checkpoint is the last that counts.
        complete = state.generation - len(state.pending)
        so_far = [each for each in self.generations() if each <= complete]
        for old in so_far[: -self._settings.keep_last]:
            if not (self._settings.keep_every and old % self._settings.keep_every == 0):
                folder.remove(self.path(old).name)

    def generations(self) -> list[int]:
        """Lists the checkpoints.

        Returns:
            The number of finished generations of each, in order.
        """
        return generations(self.folder)

    def newest(
        self, state_type: type, origin: Mapping[str, Any], check: Callable[[Checkpoint], None] = lambda _: None
    ) -> tuple[Checkpoint | None, list[Unusable]]:
        """Finds the newest checkpoint that a run can go on from.

        Args:
            state_type: The class of the algorithm's states.
            origin: What the run's results depend on; checkpoints of another origin are passed over.
            check: Raises ValueError for a checkpoint that cannot be used for another reason.

        Returns:
            The checkpoint, None if there is none, and the newer ones that were passed over.
        """
        while True:
            generations = self.generations()
            unusable: list[Unusable] = []
            for generation in reversed(generations):
                try:
                    checkpoint = self.load(generation, state_type, origin)
                    check(checkpoint)
                    return checkpoint, unusable
                except ValueError as error:  # CheckpointError is one
                    why = error.__cause__
                    unread = why if isinstance(why, OSError) and why.errno == errno.EIO else None
                    unusable.append(Unusable(self.path(generation), str(error), unread))
            # Meanwhile the run itself may have replaced what was there by newer ones.
            if set(generations) <= set(self.generations()):
                return None, unusable

    def load(self, generation: int, state_type: type, origin: Mapping[str, Any]) -> Checkpoint:
        """Reads a checkpoint.

        Args:
            generation: Number of finished generations.
            state_type: The class of the algorithm's states.
            origin: What the run's results depend on.

        Returns:
            The checkpoint.

        Raises:
            CheckpointError: It cannot be used, or is another run's.
        """
        checkpoint = load(self.path(generation), state_type)
        if checkpoint.state.generation != generation:
            raise CheckpointError(f"is of generation {checkpoint.state.generation}, not of {generation}")
        unsealed = None if self._trust else why_not(checkpoint.state.algorithm, checkpoint.seal)
        if unsealed is not None:
            raise CheckpointError(unsealed)
        differences = _differences(checkpoint.origin, _as_json(origin))
        if differences:
            raise CheckpointError(f"is another run's: {'; '.join(differences)}")
        return checkpoint

    def check_file(self, config: Config) -> None:
        """Checks a file of the user's own that the environment is made from, such as a maze.

        Args:
            config: The run's configuration.

        Raises:
            UserError: The file's content is not what the newest checkpoint of the run remembers.
        """
        if config.environment.file is None:
            return
        ours = _as_json(config.origin())
        for generation in reversed(self.generations()):
            try:
                checkpoint = self.load(generation, config.algorithm.state_type, ours)
            except CheckpointError:
                continue
            config.environment.check_file(checkpoint.origin["env"]["file"], self.folder.parent)
            return


def generations(folder: Path) -> list[int]:
    """Lists the checkpoints in a folder.

    Args:
        folder: A run's folder of checkpoints, which need not be there.

    Returns:
        The number of finished generations of each, in order.
    """
    if not folder.is_dir():
        return []
    names = (_NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(name[1]) for name in names if name)


def set_aside(run: Directory, unusable: Unusable) -> None:
    """Renames a checkpoint that cannot be used, so that it is neither read again nor overwritten.

    Args:
        run: The run's folder.
        unusable: The checkpoint.

    Raises:
        OSError: It cannot be renamed.
    """
    name = unusable.path.name
    with run.below(unusable.path.parent.name) as folder:
        number, new = 1, f"{name}.unusable"
        while folder.status(new) is not None:
            number += 1
            new = f"{name}.unusable-{number}"
        folder.rename(name, new)


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """Which keys of two origins differ, as `algorithm.sigma is 0.005 there and 0.002 here`.

    What a file of the environment's holds is not compared: `Checkpoints.check_file` does that for callers that play.
    """
    found = []
    for section in dict.fromkeys([*theirs, *ours]):
        there, here = theirs.get(section), ours.get(section)
        if not isinstance(there, Mapping) or not isinstance(here, Mapping):
            there, here = {"": there}, {"": here}
        for key in dict.fromkeys([*there, *here]):
            if (section, key) == ("env", "file") and key in there and key in here:
                continue
            if there.get(key) != here.get(key):
                name = f"{section}.{key}".rstrip(".")
                found.append(f"{name} is {_shown(there, key)} there and {_shown(here, key)} here")
    return found


def _shown(table: Mapping[str, Any], key: str) -> str:
    return json.dumps(table[key]) if table.get(key) is not None else "not set"
