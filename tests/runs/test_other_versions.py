"""Runs of other versions of neuroevo are refused in one line that says what is different, and nothing is touched."""

import hashlib
import json

import pytest
from neuroevo.runs.checkpoint import VERSION, version_of
from neuroevo.runs.other_versions import refuse_other_versions
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.reader import RunReader
from tests.support.runs import TABLES, config, new_run

OLD_CONFIG = """
[env]
name = "frostbite"

[network]
name = "mlp"
normalise_observations = false

[algorithm]
name = "ga"
population = 8
parents = 3
validated = 3

[training]
seed = 4
cutoff = 5000
timesteps = 1000

[machine]
threads = 2
"""
OLD_KEYS = (
    "machine",
    "network.normalise_observations",
    "algorithm.validated",
    "training.cutoff",
    "training.timesteps",
)


def write_checkpoint(folder, generation, version):
    """A file whose head is that of a checkpoint of this version of the format."""
    content = json.dumps({"version": version, "generation": generation, "cutoff": 5000, "untested": []}).encode()
    head = {"format": "neuroevo checkpoint", "version": version, "bytes": len(content)}
    head["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    path = folder / "checkpoints" / f"generation-{generation:06d}.ckpt"
    path.write_bytes(json.dumps(head).encode() + b"\n" + content)
    return path


def old_run(folder, toml=OLD_CONFIG):
    """A run's folder as the version before this format left it."""
    for generation in (1, 2, 3):
        write_checkpoint(folder, generation, 3)
    (folder / "config.toml").write_text(toml)
    for name in ("metrics.jsonl", "elites.jsonl"):
        (folder / name).write_text('{"generation": 0}\n')
    return folder


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("toml", [OLD_CONFIG, config().toml(), "not TOML"], ids=["old keys", "new keys", "no TOML"])
@pytest.mark.parametrize("command", [("train", "--resume"), ("evaluate",), ("export",)], ids=" ".join)
def test_old_checkpoints_are_refused_in_one_line(tmp_path, toml, command):
    folder = old_run(tmp_path / "run", toml)
    before = content(folder)
    result = CliRunner().invoke(app, [*command, str(folder)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"neuroevo: another version of neuroevo made the run in {folder}: its checkpoints have version 3 of the "
        f"format, this neuroevo reads version {VERSION}\n"
    )
    assert content(folder) == before


def test_old_keys_are_refused_in_one_line(tmp_path):
    new_run(tmp_path / "run")
    (tmp_path / "run" / "config.toml").write_text(OLD_CONFIG)
    before = content(tmp_path / "run")
    for read in (RunFolder.resume, RunReader):
        with pytest.raises(UserError) as caught:
            read(tmp_path / "run")
        message = str(caught.value)
        assert "\n" not in message
        assert f": it has {', '.join(OLD_KEYS)}, which " in message
    assert content(tmp_path / "run") == before


def test_a_start_from_an_old_run_is_refused(tmp_path):
    folder = old_run(tmp_path / "run")
    with pytest.raises(ConfigError) as raised:
        RunFolder.create(tmp_path / "next", config(training={"start_from": str(folder)}))
    (problem,) = raised.value.problems
    assert (problem.key, problem.value) == ("training.start_from", str(folder))
    assert "another version" in problem.reason and "version 3" in problem.reason and "\n" not in problem.reason


@pytest.mark.parametrize("algorithm", [{"name": "es", "population": 8, "sigma": 0.1}, TABLES["algorithm"]])
def test_a_run_of_this_version_is_not_refused(tmp_path, algorithm):
    new_run(tmp_path / "run", algorithm=algorithm)
    refuse_other_versions(tmp_path / "run")
    write_checkpoint(tmp_path / "run", 7, 3)  # others of its checkpoints can be used
    refuse_other_versions(tmp_path / "run")


def test_the_version_of_a_file(tmp_path):
    path = write_checkpoint(tmp_path, 1, 3)
    assert version_of(path) == 3
    for data in (b"", b"\n", b"[4]\n", b'{"format": "zip", "version": 4}\n', b'{"format": "neuroevo checkpoint"}\n'):
        path.write_bytes(data)
        assert version_of(path) is None
    assert version_of(tmp_path / "absent") is None
