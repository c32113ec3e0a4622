"""What pages have the code say: a comment `<!-- generated: WHAT -->` on a line of its own becomes Markdown.

WHAT is one of the names in MADE, some with an argument: `<!-- generated: keys algorithm.ga -->`. Nothing here knows
MkDocs, so that tests can ask for a page's tables without it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from docs.hooks.command_pages import commands
from docs.hooks.settings_tables import code, escaped, settings_table, summary
from neuroevo.algorithms.evosax import Evosax
from neuroevo.algorithms.optimizers import SGD, Adam, ClipUp
from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.algorithms.schedules import ConstantSchedule, ExponentialSchedule, LinearSchedule
from neuroevo.config import sources
from neuroevo.config.schema import SECTIONS
from neuroevo.envs import registry
from neuroevo.envs.atari import AtariGame, AtariOptions
from neuroevo.envs.atari_ram import RAM_NAMES
from neuroevo.envs.brax import BraxOptions
from neuroevo.envs.gymnasium.family import GymnasiumOptions
from neuroevo.envs.hard_maze import HardMazeOptions
from neuroevo.envs.mjx import MjxOptions
from neuroevo.networks.architectures import NETWORKS
from neuroevo.networks.layer_lines import forms
from neuroevo.sweeps.settings import SweepSettings
from neuroevo.training.record import COLUMNS

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "experiments" / "results"
_AUTHORS = re.compile(r"[A-Z]\w+(?: et al\.|(?:, \w+)* and \w+)? \d{4}")
_PAPER = re.compile(r"https://(?:arxiv|doi|hal)[^\s),]+|arXiv[: ][\d.]+\d")
_TESTED = ("ale-py", "gymnasium", "mujoco", "numpy", "tensorflow", "jax", "brax", "evosax", "ray", "optuna", "ribs")
_COMMENT = re.compile(r"^<!-- generated: (.+?) -->$", re.MULTILINE)
_KEYS: dict[str, type] = {
    **{name: kind for name, kind in SECTIONS.items() if kind is not None},
    **{f"algorithm.{name}": kind for name, kind in ALGORITHMS.items()},
    "algorithm.evosax": Evosax,
    "optimizer.adam": Adam,
    "optimizer.sgd": SGD,
    "optimizer.clipup": ClipUp,
    "schedule.ConstantSchedule": ConstantSchedule,
    "schedule.LinearSchedule": LinearSchedule,
    "schedule.ExponentialSchedule": ExponentialSchedule,
    "env.options atari": AtariOptions,
    "env.options hard_maze": HardMazeOptions,
    "env.options gymnasium": GymnasiumOptions,
    "env.options brax": BraxOptions,
    "env.options mjx": MjxOptions,
    "sweep": SweepSettings,
}


def generated(markdown: str) -> str:
    """Returns a page with what its comments ask for in their place.

    Raises:
        KeyError: A comment asks for what there is not.
    """
    return _COMMENT.sub(lambda found: _made(found[1]), markdown)


def _made(what: str) -> str:
    name, _, argument = what.partition(" ")
    if name not in MADE:
        raise KeyError(f"generated: {what}: expected one of {', '.join(MADE)}")
    return MADE[name](argument)


def _keys(name: str) -> str:
    """The keys of a section, of an algorithm, or of a family's options."""
    if name.startswith("env.options mujoco "):
        return settings_table(_mujoco(name.rpartition(" ")[2]))
    if name not in _KEYS:
        raise KeyError(f"generated: keys {name}: expected one of {', '.join(_KEYS)}")
    return settings_table(_KEYS[name], f"{name}." if name in SECTIONS else "")


def _mujoco(task: str) -> type:
    found, _ = registry.check(task, {})
    if found is None or found.family != "mujoco":
        raise KeyError(f"generated: keys env.options mujoco {task}: expected a task of MuJoCo, such as Ant-v5")
    return found.options_type


def _presets(_: str) -> str:
    rows = [f"| {code(name)} | {escaped(sources.description(path))} |" for name, path in sources.presets().items()]
    return "\n".join(["| preset | description |", "|---|---|", *rows])


def _preset_files(_: str) -> str:
    parts = [
        f"### {name}\n\n```toml\n{path.read_text(encoding='utf-8')}```" for name, path in sources.presets().items()
    ]
    return "\n\n".join(parts)


def _networks(_: str) -> str:
    made = {name: _first_line(make).removeprefix("Return ") for name, make in NETWORKS.items()}
    rows = [f"| {code(name)} | {escaped(what)} |" for name, what in made.items()]
    return "\n".join(["| network | description |", "|---|---|", *rows])


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]


def _algorithms(_: str) -> str:
    """Return a row per algorithm: summary, paper, population, cost of an update (1,000 members, 4M weights)."""
    measured = json.loads((_RESULTS / "updates.json").read_text(encoding="utf-8"))["updates"]
    rows = []
    for name, kind in ALGORITHMS.items():
        cost = measured.get(name, {})
        of_es, memory = (
            f"{cost[key]:{form}}" if cost else "" for key, form in (("of_es", ".2f"), ("memory_mb", ",.0f"))
        )
        population = "4 + 3 ln D" if kind.population is None else f"{kind.population:,}"
        page = f"{_page(name)}.md"
        text = (_ROOT / "docs" / "algorithms" / page).read_text(encoding="utf-8")
        results = f"[results]({page}#results)" if "\n## Results\n" in text else ""
        cells = f"[{name}]({page})", summary(kind), _paper(kind), population, of_es, memory, results
        rows.append(f"| {' | '.join(cells)} |")
    head = "| algorithm | description | paper | default population | update, relative to es | memory, MB | results |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *rows])


def _paper(kind: type) -> str:
    """A link to the first paper that a class's module names."""
    text = inspect.getdoc(inspect.getmodule(kind)) or ""
    authors, where = _AUTHORS.search(text), _PAPER.search(text)
    if authors is None or where is None:
        return ""
    return f"[{authors[0]}]({re.sub('^arXiv[: ]', 'https://arxiv.org/abs/', where[0])})"


def _page(algorithm: str) -> str:
    return "ns_es" if algorithm.startswith("ns") else algorithm  # which share a page


def _layers(_: str) -> str:
    rows = [f"| {code(kind)} | {code(form.removesuffix(' alone'))} |" for kind, form in forms().items()]
    return "\n".join(["| layer | syntax |", "|---|---|", *rows])


def _commands(_: str) -> str:
    from neuroevo.cli import app

    return commands(app, "neuroevo")


def _games(_: str) -> str:
    names = AtariGame.names()
    return f"{len(names)} games: {', '.join(map(code, names))}."


def _ram(_: str) -> str:
    rows = [f"| {code(game)} | {', '.join(map(code, names))} |" for game, names in RAM_NAMES.items()]
    return "\n".join(["| game | bytes |", "|---|---|", *rows])


def _columns(_: str) -> str:
    return ", ".join(code(name) for name in COLUMNS) + "."


def _schema(_: str) -> str:
    schema = files("neuroevo.runs").joinpath("schema.sql").read_text(encoding="utf-8")
    return f"```sql\n{schema}```"


def _tested(_: str) -> str:
    lines: dict[str, list[str]] = {}
    for line in (_ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, _, version = line.partition("==")
        lines.setdefault(name, []).append(version.replace(" ; python_full_version", ", Python").replace("'", ""))
    rows = [f"| {name} | {'; '.join(lines[name])} |" for name in _TESTED]
    return "\n".join(["| package | tested version |", "|---|---|", *rows])


MADE: dict[str, Callable[[str], str]] = {
    "keys": _keys,
    "presets": _presets,
    "preset_files": _preset_files,
    "networks": _networks,
    "algorithms": _algorithms,
    "layers": _layers,
    "commands": _commands,
    "games": _games,
    "ram": _ram,
    "columns": _columns,
    "schema": _schema,
    "tested": _tested,
}
