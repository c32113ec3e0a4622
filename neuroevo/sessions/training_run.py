"""Train a run until its budget is spent, and write the records to its folder."""

from __future__ import annotations

from collections.abc import Iterable

from neuroevo.config.schema import Config
from neuroevo.core.errors import shortened
from neuroevo.core.evaluator import Evaluator
from neuroevo.sessions.folder import RunFolder, log
from neuroevo.training import loop
from neuroevo.training.callback import AnyCallback, Callbacks
from neuroevo.training.journal import JournaledEvaluator
from neuroevo.training.state import TrainState, spent
from neuroevo.training.trackers import trackers_of


def run(
    config: Config,
    evaluator: Evaluator,
    folder: RunFolder,
    callbacks: Iterable[AnyCallback] = (),
) -> TrainState:
    """Train in an open run folder, from the folder's state, until a budget is spent.

    Each finished generation is written to the folder. If an exception such as KeyboardInterrupt or DiskError ends the
    training early, the state after the last finished generation is stored, if possible, before the exception is raised
    again; `RunFolder.resume` continues from that state.

    Use `neuroevo.train` unless you need a custom evaluator.

    Args:
        config: The configuration, normally `folder.config`.
        evaluator: Plays the episodes; the caller closes it.
        folder: The run's folder, made with `RunFolder.create` or `RunFolder.resume` and opened with `open`.
        callbacks: Callbacks that receive the run's events, in this order, before the configuration's trackers.

    Returns:
        The state after the last generation.

    Raises:
        DiskError: The disk is full or broken; the run can be resumed.
        SimulationError: All episodes of a population or of a validation failed.
        EnvironmentFailure: An environment of Gymnasium raised an exception or did not answer in time.
        ValueError: A fitness is not finite.
        UserError: A metric of the algorithm is not finite or has a reserved name.

    Example:
        >>> from neuroevo.sessions.folder import RunFolder
        >>> from neuroevo.sessions.evaluators import make_evaluator
        >>> from neuroevo.sessions.training_run import run
        >>> folder = RunFolder.resume("runs/frostbite", overrides=["training.generations=5"])
        >>> with make_evaluator(folder.config, folder.reference_batch) as evaluator, folder.open(["my_script.py"]):
        ...     state = run(folder.config, evaluator, folder)
    """
    names = config.algorithm_name, config.env.name, config.network, evaluator.device
    log.info("%s on %s with %s evaluated on the %s, from generation %d", *names, folder.state.generation)
    callback, journal, ended = Callbacks([*callbacks, *trackers_of(config), folder]), folder.journal(), None
    if journal is not None:
        evaluator = JournaledEvaluator(evaluator, journal)
    try:
        callback.begin(config, folder.path, folder.state.generation)
        for state, records in loop.train(config.algorithm, evaluator, config.training, folder.state, callback):
            folder.add(state, records)
            for record in records:
                callback.generation(record)
    except BaseException as error:
        ended = error
        # The user requested an interruption, so it is not logged as an error.
        tell = log.info if isinstance(error, KeyboardInterrupt) else log.error
        tell("stopped in generation %d: %s", folder.state.generation, _in_one_line(error))
        folder.save()
        raise
    else:
        log.info("finished %s", spent(folder.state, config.training))
    finally:
        callback.end(ended)
    return folder.state


def _in_one_line(error: BaseException) -> str:
    """Return an error's type and the first line of its message, for the log; the rest goes to standard error."""
    reason = shortened(str(error).strip().partition("\n")[0])
    return f"{type(error).__name__}: {reason}" if reason else repr(error)
