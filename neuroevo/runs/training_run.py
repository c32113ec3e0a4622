"""One training run with everything around the loop: the evaluator from a configuration, the records into a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroevo.config.load import load_config, make_config
from neuroevo.config.schema import Config
from neuroevo.core.evaluator import Evaluator
from neuroevo.runs.folder import RunFolder, log
from neuroevo.runs.reader import RunReader
from neuroevo.system.tensorflow_import import load_tensorflow
from neuroevo.training import loop
from neuroevo.training.loop import TrainState, Watcher, spent
from neuroevo.training.record import Record

if TYPE_CHECKING:
    import numpy as np

    from neuroevo.rollout.evaluator import LocalEvaluator


def make_evaluator(config: Config, reference_batch: np.ndarray | None = None) -> LocalEvaluator:
    """The evaluator that a configuration describes; loads TensorFlow, which takes seconds.

    reference_batch: the run's, where its networks need one (RunFolder.reference, RunReader.reference()).

    UserError: there is no such environment or network, or an option is wrong.
    """
    load_tensorflow()
    from neuroevo.rollout.evaluator import LocalEvaluator

    return LocalEvaluator(
        config.environment,
        config.network,
        device=config.hardware.device,
        threads=config.hardware.threads,
        lanes=config.hardware.lanes,
        slots=config.hardware.slots,
        behavior=config.algorithm.behavior,
        reference_batch=reference_batch,
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
        for state, records in loop.train(config.algorithm, evaluator, config.training, folder.state, watcher):
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


def train(
    config: Config | Mapping[str, Any] | Path | str,
    out: Path | str | None = None,
    overrides: Sequence[str] = (),
    *,
    command: Sequence[str] = ("neuroevo.train",),
    watcher: Watcher | None = None,
    on_generation: Callable[[TrainState, Record], None] | None = None,
) -> RunReader:
    """A new run from start to end, as `neuroevo train` makes one: what it left is in the folder that the reader reads.

    config: a file, a preset's name, tables, or what load_config() returned. out: the run's folder; None for
    runs/<name>-<local time>. overrides: such as "training.seed=3", to a file or preset. command: what info.json says
    that the run was started by. on_generation: as run() calls it. UserError: the configuration, or where to write.
    """
    name = "run"
    if isinstance(config, (str, Path)):
        name, config = Path(config).stem, load_config(config, overrides)
    elif not isinstance(config, Config):
        config = make_config(config)
    folder = RunFolder.create(out, config, name)
    with make_evaluator(config, folder.reference_batch) as evaluator, folder.open(command):
        run(config, evaluator, folder, watcher or Watcher(), on_generation)
    return RunReader(folder.path)


def _in_one_line(error: BaseException) -> str:
    """Kind and reason; what follows the first line is for standard error."""
    reason = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {reason}" if reason else repr(error)
