"""Runs of other versions of neuroevo are rejected with a one-line error, and nothing is modified."""

import pytest
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.damage import forge
from tests.support.databases import change, query
from tests.support.runs import config, contents, new_run


@pytest.fixture
def earlier(tmp_path):
    """A run folder in the format of versions before run.db."""
    folder = tmp_path / "earlier"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.toml").write_text(config().toml())
    for name in ("metrics.jsonl", "elites.jsonl", "checkpoints/generation-000001.ckpt"):
        (folder / name).write_text('{"generation": 0}\n')
    return folder


@pytest.mark.parametrize("command", [("train", "--resume"), ("evaluate",), ("export",), ("inspect",)], ids=" ".join)
def test_a_folder_of_before_the_database_is_refused_in_one_line(earlier, command):
    before = contents(earlier)
    result = CliRunner().invoke(app, [*command, str(earlier)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"neuroevo: an earlier version of neuroevo made the run in {earlier}, which this one does not read: expected "
        f"{earlier / 'run.db'}\n"
    )
    assert contents(earlier) == before


def test_no_new_run_goes_into_it(earlier):
    before = contents(earlier)
    with pytest.raises(UserError, match=r"holds metrics.jsonl of another run without its run.db"):
        RunFolder.create(earlier, config())
    assert contents(earlier) == before


def test_a_start_from_an_earlier_run_is_refused(earlier, tmp_path):
    with pytest.raises(ConfigError) as raised:
        RunFolder.create(tmp_path / "next", config(training={"start_from": str(earlier)}))
    (problem,) = raised.value.problems
    assert (problem.key, problem.value) == ("training.start_from", str(earlier))
    assert "an earlier version" in problem.reason and "\n" not in problem.reason


@pytest.mark.parametrize("read", [RunFolder.resume, RunReader])
def test_another_schema_is_refused_in_one_line(tmp_path, read):
    new_run(tmp_path / "run")
    (version,) = query(tmp_path / "run", "PRAGMA user_version")[0]
    change(tmp_path / "run", f"PRAGMA user_version = {version + 1}")
    with pytest.raises(UserError) as raised:
        read(tmp_path / "run")
    assert f"its schema has version {version + 1}, this neuroevo reads version {version}" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_keys_of_another_version_are_named(tmp_path):
    new_run(tmp_path / "run")
    text = config().toml().replace("[training]", "[training]\ntimesteps = 1000")
    forge(tmp_path / "run", "run", "id = 1", config=text)
    for read in (RunFolder.resume, RunReader):
        with pytest.raises(ConfigError) as raised:
            read(tmp_path / "run")
        assert [problem.key for problem in raised.value.problems] == ["training.timesteps"]
