"""One training run with everything around the loop: the evaluator from a configuration, the records into a folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neuroevo.config import Config
from neuroevo.episodes import Evaluator
from neuroevo.metrics import Record
from neuroevo.quiet import load_tensorflow
from neuroevo.run_folder import RunFolder, log
from neuroevo.train import TrainState, Watcher, spent, train

if TYPE_CHECKING:
    import numpy as np

    from neuroevo.evaluator import LocalEvaluator


def make_evaluator(config: Config, reference: np.ndarray | None = None) -> LocalEvaluator:
    """The evaluator that a configuration describes; loads TensorFlow, which takes seconds.

    reference: the run's, where its networks need one (RunFolder.reference, RunReader.reference()).

    UserError: there is no such environment or network, or an option is wrong.
    """
    load_tensorflow()
    from neuroevo.evaluator import LocalEvaluator

    return LocalEvaluator(
        config.env.name,
        config.network,
        env_options=config.env.options,
        device=config.hardware.device,
        threads=config.hardware.threads,
        lanes=config.hardware.lanes,
        slots=config.hardware.slots,
        behavior=config.algorithm.behavior,
        reference=reference,
    )


def run(
    config: Config,
    evaluator: Evaluator,
    folder: RunFolder,
    watcher: Watcher,
    on_generation: Callable[[TrainState, Record], None] | None = None,
) -> TrainState:
    """Trains from the folder's state until a budget is spent, writes each generation, and returns the last state.

    on_generation sees each state and record after it is written. What ends it early (KeyboardInterrupt, DiskError)
    passes through after a checkpoint of the last finished generation.
    """
    names = config.algorithm_name, config.env.name, config.network, evaluator.device
    log.info("%s on %s with %s evaluated on the %s, from generation %d", *names, folder.state.generation)
    try:
        for state, records in train(config.algorithm, evaluator, config.training, folder.state, watcher):
            folder.add(state, records)
            for record in records:
                watcher.generation(record)
                if on_generation is not None:
                    on_generation(state, record)
    except BaseException as error:
        log.error("stopped in generation %d: %s", folder.state.generation, _in_one_line(error))
        folder.save()
        raise
    log.info("finished %s", spent(folder.state, config.training))
    return folder.state


def _in_one_line(error: BaseException) -> str:
    """Kind and reason; what follows the first line is for standard error."""
    reason = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {reason}" if reason else repr(error)
