"""neuroevo.cli.child with a ToyEvaluator, for tests of sweeps: `python -m tests.support.toy_child PID train ...`.

TOY_SECONDS in the environment is how long it pretends to play the episodes of a phase. A run with seed 13 fails in its
second generation.
"""

import os
import sys
import time

from neuroevo.cli import child
from neuroevo.sessions import evaluators
from tests.support.toy import ToyEvaluator


class SlowToyEvaluator(ToyEvaluator):
    def submit(self, *arguments):
        time.sleep(float(os.environ.get("TOY_SECONDS", 0)))
        return super().submit(*arguments)


if __name__ == "__main__":
    evaluators.make_evaluator = lambda config, reference_batch: SlowToyEvaluator(
        nan_at=3 if config.training.seed == 13 else None
    )
    child.run(sys.argv[1:])
