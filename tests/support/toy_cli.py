"""The command with a ToyEvaluator, for tests that need a process: `python -m tests.support.toy_cli train ...`."""

from neuroevo.cli import main
from neuroevo.sessions import evaluators
from tests.support.toy import ToyEvaluator

if __name__ == "__main__":
    evaluators.make_evaluator = lambda config, reference_batch: ToyEvaluator()
    main()
