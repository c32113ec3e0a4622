"""The command `neuroevo` for tests of pages: runs and episodes are tiny, everything else is unchanged.

    python -m tests.support.small_neuroevo train frostbite_ga --out runs/x

SMALL bounds values of the configuration, so that a run takes seconds. A resumed run whose budget a page raises gets one
more generation. OPTIONS shortens the episodes of elites. All other arguments of a page's command are kept, including
mistakes.
"""

import sys

import typer

from neuroevo.cli import app, main
from neuroevo.config.load import load_config
from neuroevo.core.errors import UserError

SMALL = {
    "algorithm.population": 8,
    "algorithm.parents": 2,
    "algorithm.validation_candidates": 2,
    "algorithm.centers": 2,
    "training.validation_episodes": 2,
    "training.test_episodes": 2,
    "training.generations": 2,
    "training.max_episode_steps": 15,
}
SWEEP = {
    "algorithm.population": 20,
    "training.validation_episodes": 2,
    "training.test_episodes": 2,
    "training.generations": 2,
}
OPTIONS = {  # what comes after a command's own options
    "evaluate": ["--episodes", "3", "--max-episode-steps", "15"],
    "render": ["--max-episode-steps", "15"],
    "bench": ["--seconds", "0.2"],
}


def small(arguments):
    """The arguments, and changes that make a run tiny after them."""
    if arguments[:1] == ["sweep"] and "--report-only" not in arguments:
        return [*arguments, *_sets(SWEEP)]
    if arguments[:1] != ["train"]:
        return [*arguments, *OPTIONS.get(arguments[0] if arguments else "", [])]
    given = typer.main.get_command(app).commands["train"].make_context("train", arguments[1:]).params
    if given["config"] is None:
        raised = any(change.startswith("training.generations=") for change in given["overrides"] or [])
        return [*arguments, *_sets({"training.generations": 3} if raised else {})]
    try:
        tables = load_config(given["config"], given["overrides"] or []).tables()
    except UserError:  # as the command itself will say
        return arguments
    changes = {"training.generations": SMALL["training.generations"]}
    for key, most in SMALL.items():
        section, _, name = key.partition(".")
        value = tables[section].get(name)
        if isinstance(value, int) and value > most:
            changes[key] = most
    if "mlp" not in tables["network"].get("name", ""):
        changes["training.test_episodes"] = 0  # whole games, of up to 100,000 steps
    return [*arguments, *_sets(changes)]


def _sets(changes):
    return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]


if __name__ == "__main__":
    sys.argv[1:] = small(sys.argv[1:])
    main()
