"""Trials that are trained in the driver's own process, one after another and each to the end of its part."""

from contextlib import closing
from typing import ClassVar

from neuroevo.core.errors import UserError
from neuroevo.runs.paths import is_run
from neuroevo.sessions import evaluators, training_run
from neuroevo.sessions.folder import RunFolder
from neuroevo.sweeps.executors import End, Executor
from tests.support.toy import ToyEvaluator


class Inline(Executor):
    """Executor without processes, in place of neuroevo.sweeps.executors.Processes.

    Attributes:
        started: The folders of the trials that any of them has begun to train, with the generations that were there.
    """

    started: ClassVar[list] = []

    def __init__(self, sweep, *_):
        self._sweep, self._over = sweep, {}

    def start(self, trial, config):
        folder = self._sweep.out / trial.folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        begun = is_run(folder)
        try:
            made = RunFolder.resume(folder, config=config) if begun else RunFolder.create(folder, config)
            self.started.append((folder.name, made.state.generation if begun else None))
            evaluator = self.evaluator(made)
            with closing(evaluator), made.open(["test"]):
                training_run.run(made.config, evaluator, made)
            self._over[trial.number] = End()
        except UserError as error:
            self._over[trial.number] = End(str(error))

    def evaluator(self, made):
        return evaluators.make_evaluator(made.config, made.reference_batch)

    def ended(self):
        over, self._over = self._over, {}
        return over

    def stop(self, number):
        pass

    def close(self):
        pass


class InlineToys(Inline):
    """The same with ToyEvaluators."""

    def evaluator(self, made):
        return ToyEvaluator()
