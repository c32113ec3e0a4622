"""`logging.trackers`: metrics in the real packages, offline, match the run's metrics."""

import json
import struct
import time

import pytest

import neuroevo
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.runs.paths import LOG
from neuroevo.runs.reader import RunReader
from neuroevo.training import trackers
from tests.support.runs import TABLES, config

SHORT = {
    "env": {"name": "HardMaze-v0"},
    "network": {"name": "mlp", "hidden": [6]},
    "algorithm": {"name": "ga", "population": 6, "parents": 2, "sigma": 0.1, "validation_candidates": 2},
    "training": {"seed": 3, "generations": 3, "max_episode_steps": 30, "validation_episodes": 2, "test_episodes": 2},
}
NAMES = ("fitness_mean", "fitness_max", "test_mean", "frames_total", "steps_total")


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


def short(*names, **training):
    tables = {**SHORT, "training": {**SHORT["training"], **training}, "logging": {"trackers": list(names)}}
    return config(**tables)


def expected(path, name):
    return [row[name] for row in RunReader(path).rows()]


def mlflow_run(path):
    pytest.importorskip("mlflow")
    from mlflow.tracking import MlflowClient

    client = MlflowClient()
    run = client.get_run(json.loads((path / "trackers.json").read_text())["mlflow"])
    assert client.get_experiment(run.info.experiment_id).name == "neuroevo"
    histories = {name: client.get_metric_history(run.info.run_id, name) for name in NAMES}
    return run, {name: {each.step: each.value for each in history} for name, history in histories.items()}


def check_mlflow(path):
    run, histories = mlflow_run(path)
    for name in NAMES:
        assert histories[name] == dict(enumerate(expected(path, name)))
    assert run.info.run_name == path.name
    assert run.data.params["algorithm.sigma"] == "0.1" and run.data.params["network.hidden"] == "[6]"
    return run


def test_mlflow_has_the_metrics_by_generation_and_a_resumed_run_goes_on(tmp_path):
    pytest.importorskip("mlflow")
    neuroevo.train(short("mlflow", generations=2), out=tmp_path / "run")
    first = check_mlflow(tmp_path / "run")
    assert first.info.status == "FINISHED"
    neuroevo.train(short("mlflow", generations=4), out=tmp_path / "run", resume=True)
    again = check_mlflow(tmp_path / "run")
    assert again.info.run_id == first.info.run_id and len(expected(tmp_path / "run", "test_mean")) == 4


def wandb_records(file):
    """Yield the records of a wandb file: 7 bytes, then records in LevelDB's log format, in blocks of 32 KiB."""
    data, place, parts = file.read_bytes(), 7, b""
    assert data[:4] == b":W&B"
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:  # too short for a header
            place += left
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)  # after a checksum
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # complete record or its last part
            yield parts
            parts = b""


def wandb_history(path):
    """Return the rows in wandb's files, oldest first, and the configuration."""
    pytest.importorskip("wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    rows, settings = [], {}
    for file in sorted(path.glob("wandb/offline-run-*/*.wandb"), key=lambda file: file.stat().st_mtime):
        for data in wandb_records(file):
            record = Record()
            record.ParseFromString(data)
            if record.HasField("history"):
                items = {item.key or ".".join(item.nested_key): item.value_json for item in record.history.item}
                rows.append({name: json.loads(value) for name, value in items.items()})
            if record.HasField("run"):
                settings |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
                settings |= {"project": record.run.project, "id": record.run.run_id}
    return rows, settings


def test_wandb_has_the_metrics_and_a_resumed_run_goes_on(tmp_path):
    pytest.importorskip("wandb")
    path = tmp_path / "run"
    neuroevo.train(short("tensorboard", "wandb", generations=2), out=path)
    neuroevo.train(short("wandb", generations=3), {"logging.project": "mine"}, out=path, resume=True)
    rows, settings = wandb_history(path)
    deadline = time.monotonic() + 60
    while len(rows) < 3 and time.monotonic() < deadline:  # written by a separate wandb process
        time.sleep(0.1)
        rows, settings = wandb_history(path)
    assert [row["generation"] for row in rows] == [0, 1, 2]
    for name in NAMES:
        assert [row[name] for row in rows] == expected(path, name)
    assert settings["algorithm.sigma"] == 0.1 and settings["project"] == "mine"
    assert settings["id"] == json.loads((path / "trackers.json").read_text())["wandb"]


def test_trackers_are_callbacks(tmp_path):
    pytest.importorskip("mlflow")
    heard = []
    callbacks = [neuroevo.MlflowTracker(), lambda record: heard.append(record.generation)]
    neuroevo.train(short(), out=tmp_path / "run", callbacks=callbacks)
    check_mlflow(tmp_path / "run")
    assert heard == [0, 1, 2]
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_a_tracker_that_fails_ends_no_run(tmp_path, capsys):
    class Failing(trackers.Tracker):
        package = "json"  # which is there

        def _start(self, project, folder, parameters, run):
            return "1"

        def _log(self, generation, numbers):
            if generation == 1:
                raise ConnectionError("no route\nto host")
            assert generation == 0  # not called again

        def _finish(self, error):
            raise AssertionError("it has failed")

    run = neuroevo.train(short("tensorboard"), out=tmp_path / "run", callbacks=[Failing()])
    told = "the tracker json failed; the run continues without it: ConnectionError: no route to host"
    assert len(run.rows()) == 3
    assert capsys.readouterr().err == f"neuroevo: {told}\n"
    assert told in (tmp_path / "run" / LOG).read_text()


def test_a_tracker_that_cannot_start_is_reported_before_the_first_generation(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////proc/no/mlflow.db")
    with pytest.raises(UserError, match="the tracker mlflow cannot be started: "):
        neuroevo.train(short("mlflow"), out=tmp_path / "broken")
    assert not RunReader(tmp_path / "broken").rows()


@pytest.mark.parametrize(
    ("value", "hint"), [(["wandbb"], "; did you mean wandb?"), ("wandb", ""), ([3], ""), (["mlflow", "mlflow"], "")]
)
def test_mistakes(value, hint):
    with pytest.raises(ConfigError) as raised:
        config(**{**TABLES, "logging": {"trackers": value}})
    (problem,) = raised.value.problems
    assert problem.key == "logging.trackers"
    assert problem.reason == f"expected a list of some of tensorboard, wandb, mlflow{hint}"
