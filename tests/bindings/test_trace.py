"""Traces contain all operations in order and by lane; shares of the time add up and agree with other clocks."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from neuroevo.benchmarks import pipeline
from neuroevo.core.errors import UserError
from neuroevo.envs import registry
from neuroevo.native import library, trace
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.native.trace import CALL, DEVICE, TASK
from tests.support import cuda_emulated

SMALL = "input float32 2 3; dense 5 1.0; bias; tanh; dense 2 0.1; bias"


def spans_of(*rows: tuple) -> trace.Spans:
    """Return Spans from rows (name, begin, end, argument, link, thread, kind)."""
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return trace.Spans(columns[0].astype(object), *columns[1:])


def test_calls_lie_where_the_caller_s_clock_saw_them():
    library.set_threads(2)
    pool = EnvPool(registry.resolve("frostbite"), 4)
    population = Population([SMALL], 3)
    calls = [
        ("reset", 1, lambda: pool.reset([1, 3], [5, 6], [0, 0])),
        ("step", 3, lambda: pool.step([3, 1], [0, 0])),
        ("observe", 1, lambda: pool.observe([1, 3])),
        ("init", 2, lambda: population.init([0, 1], [0, 0], [3, 4])),
        ("perturb", 1, lambda: population.perturb([2], [0], [9], [0.5])),
        ("forward", 3, lambda: population.forward([0, 1, 2], np.ones((3, 2, 3), np.float32), 2)),
    ]
    busy = library.busy_seconds()
    trace.start()
    seen = []
    for name, argument, call in calls:
        begin = time.perf_counter_ns()
        call()
        seen.append((name, argument, begin, time.perf_counter_ns()))
    spans = trace.stop()
    busy = library.busy_seconds() - busy
    population.forward([0], np.ones((1, 2, 3), np.float32), 2)  # no longer recorded
    made = spans.where(spans.kind == CALL)
    assert made.name.tolist() == [name for name, *_ in seen]
    assert made.argument.tolist() == [argument for _, argument, *_ in seen]
    for (_, _, begin, end), own_begin, own_end in zip(seen, made.begin, made.end, strict=True):
        assert begin <= own_begin <= own_end <= end
    tasks = spans.where(spans.kind == TASK)
    assert len(tasks) >= 2 * 2  # one task per emulator and call
    for i in range(len(tasks)):
        (call,) = np.flatnonzero(made.name == tasks.name[i])
        assert made.begin[call] <= tasks.begin[i] <= tasks.end[i] <= made.end[call]
    assert tasks.seconds() == pytest.approx(busy, rel=1e-6)
    assert spans.dropped == 0


def test_no_room_is_an_error_and_little_room_is_counted():
    for spans in (0, 2**62):  # a too large number crashed the process when the first span was added
        with pytest.raises(ValueError, match=f"spans per thread is {spans}"):
            trace.start(spans)
    population = Population([SMALL], 1)
    trace.start(1)
    for seed in range(5):
        population.init([0], [0], [seed])
    spans = trace.stop()
    assert len(spans) + spans.dropped >= 5 and spans.dropped >= 4 and 1 <= len(spans) <= library.get_threads()


def test_forwards_belong_to_the_lane_that_observed_last_in_their_place():
    spans = spans_of(
        ("forward", 1, 2, 2, 70, 0, CALL),  # of an observe before the recording
        ("observe", 0, 10, 2, 70, 0, CALL),
        ("observe", 0, 11, 0, 71, 1, CALL),
        ("forward", 12, 20, 2, 70, 5, CALL),
        ("forward", 13, 19, 2, 70, 5, DEVICE),
        ("forward", 12, 21, 2, 71, 0, CALL),
        ("step", 22, 30, 5, 0, 0, CALL),
        ("step", 22, 29, 5, 0, 0, TASK),
        ("observe", 31, 40, 0, 70, 1, CALL),  # lane 0 now
        ("forward", 41, 50, 2, 70, 0, CALL),
        ("init", 51, 52, 3, 0, 0, CALL),
    )
    assert spans.lanes(2).tolist() == [-1, 1, 0, 1, 1, 0, 2, -1, 0, 0, -1]


def test_covered_time_counts_what_overlaps_once():
    spans = spans_of(*(("forward", b, e, 0, 0, 0, DEVICE) for b, e in ((10, 20), (0, 5), (12, 18), (19, 30), (40, 41))))
    assert spans.covered_seconds() == pytest.approx(26e-9)
    assert spans.seconds() == pytest.approx(33e-9)
    inside = spans.within(4, 15)
    assert sorted(zip(inside.begin.tolist(), inside.end.tolist(), strict=True)) == [(4, 5), (10, 15), (12, 15)]
    assert spans.where(spans.begin > 100).covered_seconds() == 0


def bench(path, **options):
    return pipeline.pipeline("frostbite", "model", trace_file=path, threads=2, lanes=2, **options)


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "cpu.json"
    return bench(path, seconds=0.8, slots=2, device="cpu"), json.loads(path.read_text())["traceEvents"]


@pytest.fixture(scope="module")
def on_emulated_gpu(tmp_path_factory):
    cuda_emulated.load()
    path = tmp_path_factory.mktemp("trace") / "emulated.json"
    return bench(path, seconds=1.0, slots=1, backend="cuda_emulated"), json.loads(path.read_text())["traceEvents"]


@pytest.mark.parametrize("made", ["on_cpu", "on_emulated_gpu"])
def test_shares_add_up(made, request):
    result, _ = request.getfixturevalue(made)
    assert result["dropped_spans"] == 0
    assert 0 < result["worker_busy"] <= 1.02  # a task counts when it ends, even if it began before the interval
    for lane in result["by_lane"]:
        assert all(share is None or -1e-3 <= share <= 1 for share in lane.values())
        assert sum(lane[name] for name in ("observe", "step", "reset", "forward", "other")) == pytest.approx(
            1, abs=1e-3
        )
        assert lane["step"] > 0 and lane["forward"] > 0


@pytest.mark.parametrize("made", ["on_cpu", "on_emulated_gpu"])
def test_a_lane_s_track_is_the_time_from_begin_to_end(made, request):
    """Spans in order without overlap, each forward between its observe and its step, and no more steps than counted."""
    result, events = request.getfixturevalue(made)
    shown = min(1.0, result["seconds"])
    tracks = {}
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["ts"] >= 0 and event["ts"] + event["dur"] <= 1e6 * shown + 10_000
            tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    steps = 0
    for lane in range(2):
        own = tracks[1, lane]
        ends = [event["ts"] + event["dur"] for event in own]
        begins = [event["ts"] for event in own]
        np.testing.assert_allclose(begins[1:], ends[:-1], atol=2e-3)  # microseconds
        assert sum(event["dur"] for event in own) == pytest.approx(ends[-1], rel=1e-6)
        calls = [event["name"] for event in own if event["name"] not in ("other", "reset")]
        assert set(calls) == {"observe", "forward", "step"}
        order = ["observe", "forward", "step"]
        start = order.index(calls[0])
        assert calls == [order[(start + i) % 3] for i in range(len(calls))]
        steps += calls.count("step") * result["slots"]
    # Compare with the queue's count, which was read just before and after the displayed time.
    if result["seconds"] <= 1.0:
        assert steps == pytest.approx(
            result["steps_per_s"] * result["seconds"], abs=3 * 2 * result["slots"] + 0.02 * steps
        )
    named = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"lane 0", "lane 1", "lanes", "worker threads", "thread 0"} <= named
    assert ("GPU" in named) == (made == "on_emulated_gpu")


def test_tasks_are_the_time_that_workers_were_busy(on_cpu):
    """Threads' tracks agree with the pool's own count; tasks of a thread do not overlap."""
    result, events = on_cpu
    threads = [event for event in events if event["ph"] == "X" and event["pid"] == 2]
    tasks = [event for event in threads if event["name"] not in ("init", "perturb")]
    assert {event["name"] for event in tasks} <= {"observe", "forward", "step", "reset"}
    for track in {event["tid"] for event in tasks}:
        own = sorted((event["ts"], event["dur"]) for event in tasks if event["tid"] == track)
        assert all(ts + dur <= later + 2e-3 for (ts, dur), (later, _) in zip(own[:-1], own[1:], strict=True))
    busy = sum(event["dur"] for event in tasks) * 1e-6 / (2 * min(1.0, result["seconds"]))
    assert busy == pytest.approx(result["worker_busy"], abs=0.03 if result["seconds"] <= 1.0 else 0.2)


def test_kernels_lie_in_the_forward_calls_of_their_lane(on_emulated_gpu):
    result, events = on_emulated_gpu
    assert result["gpu_busy"] <= 1
    kernels_of_lanes = [lane["gpu"] for lane in result["by_lane"]]
    assert max(kernels_of_lanes) - 1e-3 <= result["gpu_busy"] <= sum(kernels_of_lanes) + 1e-3
    assert result["forward_gpu_us"] <= result["forward_us"]
    for lane, shares in enumerate(result["by_lane"]):
        assert 0 < shares["gpu"] <= shares["forward"]
        own = [e for e in events if e["ph"] == "X" and e["tid"] == lane]
        forwards = [(e["ts"], e["ts"] + e["dur"]) for e in own if e["pid"] == 1 and e["name"] == "forward"]
        kernels = [(e["ts"], e["ts"] + e["dur"]) for e in own if e["pid"] == 3]
        assert len(kernels) == len(forwards)
        for begin, end in kernels:
            assert any(b - 2e-3 <= begin and end <= e + 2e-3 for b, e in forwards)


def test_no_gpu_on_the_cpu(on_cpu):
    result, _ = on_cpu
    assert result["gpu_busy"] is result["forward_gpu_us"] is None
    assert result["device"] == "cpu" and result["forward_rows"] == pytest.approx(2, abs=0.1)
    assert result["vs_env"] == pytest.approx(result["steps_per_s"] / result["env_steps_per_s"], abs=1e-3)


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match="trace .*: Is a directory"):
        bench(tmp_path, seconds=0.1, slots=1, device="cpu")


def test_a_trace_is_not_lost_to_a_mistake(tmp_path):
    (tmp_path / "trace.json").write_text("an earlier one")
    with pytest.raises(UserError, match="'frosbite'"):
        pipeline.pipeline("frosbite", "model", 0.1, tmp_path / "trace.json", device="cpu")
    assert (tmp_path / "trace.json").read_text() == "an earlier one"


def test_more_lanes_than_cores_run_at_once():
    """With fewer TensorFlow threads than lanes, the last lane would only start after another lane has ended."""
    code = """
import os
os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
from neuroevo.native import trace
from neuroevo.core.episode import Episode
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.core.genome import Genome
with LocalEvaluator("pong", "model", lanes=2, slots=1) as evaluator:
    trace.start()
    evaluator.evaluate([Episode(Genome(genome), 3, 1000) for genome in range(2)])
    spans = trace.stop()
of, steps = spans.lanes(1), (spans.kind == trace.CALL) & (spans.name == "step")
ends = [spans.end[steps & (of == lane)] for lane in range(2)]
first = min(each.max() for each in ends)
print(min((each <= first).sum() for each in ends))
"""
    steps = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert int(steps) > 30  # steps of the last lane when the first lane had ended
