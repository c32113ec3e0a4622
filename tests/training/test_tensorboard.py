"""TensorBoard event files, read by TensorFlow: the values of the metrics file, also after a resume."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.util.event_pb2 import Event, SessionLog

from neuroevo.sessions.folder import RunFolder
from tests.support.databases import delete_states_after, read_rows
from tests.support.runs import config, new_run, play
from tests.support.toy import ToyEvaluator


def events(folder, part="tensorboard"):
    """The events of each file in the order of the files' times."""
    files = [path for path in (folder / part).iterdir() if path.is_file()]
    files.sort(key=lambda path: path.stat().st_mtime_ns)
    for path in files:
        yield [Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(path))]


def scalars(folder, part="tensorboard"):
    """Return {tag: {step: value}}; a file that starts at a step replaces the events of earlier files from that step."""
    found = {}
    for file in events(folder, part):
        for event in file:
            if event.session_log.status == SessionLog.START:
                found = {tag: {s: v for s, v in of.items() if s < event.step} for tag, of in found.items()}
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def check(folder):
    rows, found = read_rows(folder), scalars(folder)
    pairs = {
        "fitness/mean": "fitness_mean",
        "fitness/max": "fitness_max",
        "validation/mean": "validation_mean",
        "test/mean": "test_mean",
        "test/standard_error": "test_standard_error",
        "steps/total": "steps_total",
        "frames/total": "frames_total",
        "seconds/total": "seconds_total",
        "steps/per_s": "steps_per_s",
        "sigma": "sigma",
        "max_episode_steps": "max_episode_steps",
    }
    for tag, key in pairs.items():
        assert sorted(found[tag]) == list(range(len(rows)))
        assert [found[tag][row["generation"]] for row in rows] == pytest.approx([row[key] for row in rows], rel=1e-6)
    assert "generation" not in found
    by_frames = scalars(folder, "tensorboard/frames")
    assert by_frames.keys() == found.keys()
    for tag, key in pairs.items():
        assert list(by_frames[tag]) == [row["frames_total"] for row in rows]
        assert list(by_frames[tag].values()) == pytest.approx([row[key] for row in rows], rel=1e-6)


def test_scalars_are_the_metrics(tmp_path):
    new_run(tmp_path / "run")
    check(tmp_path / "run")


def test_a_resumed_run_adds_a_file_that_takes_over(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        new_run(path, ToyEvaluator(interrupt_at=10), checkpoints={"every": 1})
    delete_states_after(path, 2)  # its third generation is played again
    play(RunFolder.resume(path))
    first, second = events(path)
    assert [event.step for event in second if event.session_log.status == SessionLog.START] == [2]
    assert max(event.step for event in first) == 2
    check(path)


def test_histograms_of_fitness(tmp_path):
    new_run(tmp_path / "run")
    [file] = events(tmp_path / "run")
    histograms = {e.step: v.histo for e in file for v in e.summary.value if v.tag == "fitness/distribution"}
    rows = read_rows(tmp_path / "run")
    assert sorted(histograms) == list(range(len(rows)))
    for row in rows:
        histogram = histograms[row["generation"]]
        assert (histogram.num, histogram.min, histogram.max) == (8, row["fitness_min"], row["fitness_max"])
        limits = np.array(histogram.bucket_limit)
        counts = [sum(f <= limit for f in row["fitness"]) for limit in limits]
        assert np.cumsum(histogram.bucket).tolist() == pytest.approx(counts, abs=1)
        assert sum(histogram.bucket) == 8


def test_equal_fitness_has_a_histogram(tmp_path):
    class Same(ToyEvaluator):
        def play(self, episode):
            return 3.0

    new_run(tmp_path / "run", Same())
    [file] = events(tmp_path / "run")
    assert sum(v.histo.num for e in file for v in e.summary.value if v.tag == "fitness/distribution") == 5 * 8


def test_hyperparameters(tmp_path):
    new_run(tmp_path / "run")
    [file] = events(tmp_path / "run")
    values = {v.tag: v.metadata.plugin_data for e in file for v in e.summary.value if v.tag.startswith("_hparams_/")}
    assert set(values) == {"_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info"}
    assert all(data.plugin_name == "hparams" for data in values.values())
    start = values["_hparams_/session_start_info"].content
    for key in ("algorithm.sigma", "training.seed", "env.name", "hardware.device"):
        assert key.encode() in start
    assert config().network.name.encode() in start
