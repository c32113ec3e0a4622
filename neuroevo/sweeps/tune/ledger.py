"""trials.json in a sweep's folder: every trial with its values, how it stands, and in which run's folder it is.

What reports read, without Ray; and what a sweep that goes on after a crash gives a trial again under its old number.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from neuroevo.core.errors import UserError
from neuroevo.system.files import write_atomically
from neuroevo.system.reading import parse_json, read_regular

LEDGER = "trials.json"
Status = Literal["waiting", "running", "finished", "stopped", "failed"]


@dataclass
class Trial:
    """A trial of a sweep.

    Attributes:
        number: From 0, in the order of their beginnings.
        values: Those of the space's keys, with training.seed; under population-based training the newest ones.
        status: "finished" at a budget of its configuration, "stopped" before by the scheduler, "failed" with an error.
        folder: Its run's; "" before it began.
        reason: Of a failure, in a line.
    """

    number: int
    values: dict[str, Any]
    status: Status = "waiting"
    folder: str = ""
    reason: str = ""

    @property
    def name(self) -> str:
        """What the trial and its folder are called."""
        return trial_name(self.number)


def trial_name(number: int) -> str:
    """Names a trial and its folder.

    Args:
        number: The trial's.

    Returns:
        A name that sorts as the number does.
    """
    return f"trial-{number:05d}"


@dataclass
class Ledger:
    """The trials of a sweep, in a file.

    Attributes:
        path: The file.
        trials: By number.
    """

    path: Path
    trials: dict[int, Trial] = field(default_factory=dict)

    @classmethod
    def read(cls, out: Path) -> Ledger:
        """Reads that of a sweep; an empty one where there is none.

        Args:
            out: The sweep's folder.

        Raises:
            UserError: It cannot be read.
        """
        path = out / LEDGER
        try:
            trials = [Trial(**each) for each in parse_json(read_regular(path))]
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        return cls(path, {trial.number: trial for trial in trials})

    def write(self) -> None:
        """Writes the file.

        Raises:
            OSError: It cannot be written.
        """
        trials = [asdict(self.trials[number]) for number in sorted(self.trials)]
        write_atomically(self.path, (json.dumps(trials, indent=1) + "\n").encode())

    def update(self, number: int, **changes: Any) -> Trial:
        """Changes a trial, and the file where that makes a difference.

        Args:
            number: The trial's.
            changes: Attributes of a Trial.

        Returns:
            The trial.
        """
        trial = self.trials[number]
        before = asdict(trial)
        for name, value in changes.items():
            setattr(trial, name, value)
        if asdict(trial) != before:
            self.write()
        return trial
