"""The command with a ToyEvaluator: `python -m tests.toy_cli train ...`, for tests that need a process of its own."""

from neuroevo import run
from neuroevo.cli import main
from tests.toy import ToyEvaluator

if __name__ == "__main__":
    run.make_evaluator = lambda config, reference: ToyEvaluator()
    main()
