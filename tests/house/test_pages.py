"""What README.md and the pages of docs/ show works: a page's blocks are run one after another, as a reader would.

They run in an empty folder that has `experiments` in it, with `neuroevo` playing tiny runs
(tests/support/small_neuroevo.py). Blocks that cannot run here say why in the page (tests/support/pages.py), and of
them is tried that commands, options, modules, extras and targets exist.
"""

import importlib.util
import os
import re
import shlex
import subprocess
import sys

import pytest
import typer

from neuroevo.cli import app
from neuroevo.config.load import load_config, make_config
from neuroevo.config.template import start
from neuroevo.core.problems import inline
from neuroevo.sweeps.sweep import load_sweep
from neuroevo.system.reading import tomllib
from tests.support.fork_server import fork_server, write_client
from tests.support.pages import PAGES, ROOT, blocks_of, without_blocks

OTHERS = {"sweep": load_sweep}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
SECONDS = 240
LONG = ("tutorials/sweep", "guides/performance", "guides/tensorflow", "guides/looking")
COMMON = ("questions",)  # whose commands other pages have, too
THOROUGH = tuple(f"docs/{name}.md" for name in LONG + COMMON)


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_code_is_between_fences(path):
    assert blocks_of(path) is not None  # which says what is wrong with a fence
    previous = ""
    for line in without_blocks(path).splitlines():
        assert previous or not line.startswith("    "), f"an indented block, which is not run: {line}"
        previous = line.strip()


def test_links_of_the_readme():
    """Those of docs/ are MkDocs' own business: make docs."""
    text = (ROOT / "README.md").read_text()
    targets = {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target}
    assert len(targets) > 20 and not [target for target in targets if not (ROOT / target).is_file()]


def with_blocks():
    """The pages that have blocks to run."""
    for path in PAGES:
        if any(block.runs for block in blocks_of(path)):
            yield pytest.param(path, marks=[pytest.mark.thorough] * (name_of(path) in THOROUGH), id=name_of(path))


@pytest.mark.slow
@pytest.mark.parametrize("path", [*with_blocks()])
def test_blocks_run(path, tmp_path, monkeypatch, environment):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)  # where configurations that are checked find a page's modules
    (folder / "experiments").symlink_to(ROOT / "experiments")
    for number, block in enumerate(blocks_of(path)):
        if block.title:
            (folder / block.title).write_text(block.text)
        if not block.runs:
            continue
        if block.language == "toml":
            check_toml(block, folder / (block.title or f"block_{number}.toml"))
        elif block.language == "sh":
            run(block, ["bash", "-euo", "pipefail", "-c", block.text], folder, environment)
        else:
            script = folder / (block.title or f"block_{number}.py")
            script.write_text(block.text)
            run(block, ["run_script", script], folder, environment)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_what_is_not_run_exists(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in blocks_of(path):
        if block.language != "sh" or block.runs:
            continue
        for line in block.text.splitlines():
            for command in re.split(r" (?:&&|\|) ", line):
                check_command(shlex.split(command, comments=True), block.where)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment in which `neuroevo` plays tiny runs, and `python` is this one."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (folder / "python").chmod(0o755)
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    with fork_server() as address:
        write_client(folder / "neuroevo", address, small=True)
        write_client(folder / "run_script", address, script=True)
        yield {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}


def run(block, command, folder, environment):
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    said = f"{block.where}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert done.returncode == block.exit_code, said


def check_toml(block, file):
    """A sweep or a comparison is whole; a configuration may leave out what is not shown."""
    tables = tomllib.loads(block.text)
    file.write_text(block.text)
    other = next((load for name, load in OTHERS.items() if name in tables), None)
    if other is not None:
        other(file)
    elif block.title:
        load_config(file)
    else:
        name = tables.get("env", {}).get("name", "frostbite")
        whole = start([f"env.name={inline(name)}"]).tables()
        del whole["algorithm"], whole["env"]
        make_config({**{section: whole[section] for section in ("network", "training")}, **tables})


def check_command(words, where):
    """What a command names is there, without giving it."""
    program = words[0].rpartition("/")[2] if words else ""
    if program == "neuroevo":
        command = typer.main.get_command(app)
        rest = words[1:]
        while getattr(command, "commands", None):
            assert rest and rest[0] in command.commands, f"{where}: there is no command {' '.join(words)}"
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(" ".join(words[:2]), list(rest))  # UsageError: there is no such option
    elif program == "make":
        named = [word for word in words[1:] if "=" not in word]
        assert set(named) <= set(TARGETS), f"{where}: the Makefile has no {named}"
    elif program == "python" and "-m" in words:
        module = words[words.index("-m") + 1]
        assert importlib.util.find_spec(module) is not None, f"{where}: there is no module {module}"
    elif program == "pip":
        named = {extra for word in words for found in re.findall(r"\[([\w,-]+)\]", word) for extra in found.split(",")}
        assert named <= {*EXTRAS, "classic-control"}, f"{where}: there are no extras {named - set(EXTRAS)}"
