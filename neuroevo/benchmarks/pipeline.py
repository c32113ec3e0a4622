"""Benchmark of the utilization of CPU threads, lanes and the GPU during rollouts: `bench pipeline`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.benchmarks import env_rate, rates
from neuroevo.core.errors import cannot_write
from neuroevo.native import library, trace

_MARGIN_SECONDS = 0.1  # a span is recorded when it ends, so the window needs whole spans before and after it
_SHOWN_SECONDS = 1.0  # length of the trace in the file; viewers are slow with longer traces


def pipeline(game: str, network: str, seconds: float, trace_file: Path | None = None, **options: Any) -> dict[str, Any]:
    """Measure rollouts, environments without networks, and the utilization of threads, lanes and GPU during rollouts.

    Args:
        game: Name of the environment.
        network: Name of the network.
        seconds: Duration of the rollouts in wall-clock seconds; environments without networks are measured for the same
            duration, half before and half after the rollouts.
        trace_file: File for a trace of the last second as JSON, for ui.perfetto.dev or chrome://tracing; None for none.
        **options: As for rates.Rollout.

    Returns:
        The setup (bench, game, network, dtype, genomes, device, engine, threads, lanes, slots, seconds), and

        - steps_per_s, frames_per_s: Throughput of the rollouts.
        - env_steps_per_s: Throughput of environments without networks on the same threads, measured before and after
          the rollouts.
        - vs_env: The ratio steps_per_s / env_steps_per_s.
        - worker_busy: Share of the worker threads' time with work.
        - gpu_busy: Share of the time in which at least one kernel runs; None on the CPU.
        - rows: Share of the lanes' time spent making weights.
        - forward_us, forward_gpu_us: Mean time of a forward call and of its kernels, in microseconds; the latter is
          None on the CPU.
        - forward_rows: Mean number of networks in a forward call.
        - by_lane: For each lane, the shares of its time in observe, step, reset and forward; gpu, the part of forward
          spent in kernels (None on the CPU); and other: the queue, the lane's loop and making weights.
        - dropped_spans: Number of spans that did not fit into the trace; if it is not 0, the shares are too low.

    Raises:
        UserError: The game, the network or an option is unknown or unsupported, or the file cannot be written.
        DiskError: The disk is full or broken.
    """
    if trace_file is not None:
        _write("", trace_file, "a")  # reports an unwritable file before measuring; keeps an old trace until then
    with rates.Rollout(game, network, **options) as rollouts:
        setup, threads, lanes, slots = rollouts.setup, rollouts.threads, rollouts.lanes, rollouts.slots
        alone = [env_rate.env(game, max(threads, lanes * slots), threads, seconds / 2)]
        rollouts.play(rates.WARM_UP_SECONDS)
        trace.start()
        try:
            steps_before, began = rollouts.play(_MARGIN_SECONDS)
            busy = library.busy_seconds()
            steps, ended = rollouts.play(seconds)
            busy = library.busy_seconds() - busy
            rollouts.play(_MARGIN_SECONDS)
        finally:
            recorded = trace.stop()
    alone.append(env_rate.env(game, max(threads, lanes * slots), threads, seconds / 2))
    window = int(began * 1e9), int(ended * 1e9)
    if trace_file is not None:
        shown = max(window[0], window[1] - int(_SHOWN_SECONDS * 1e9)), window[1]
        _write(json.dumps(trace.chrome_json(recorded, lanes, slots, *shown)), trace_file, "w")
    rate = (steps - steps_before) / (ended - began)
    alone_rate = sum(each["steps_per_s"] for each in alone) / len(alone)
    return {
        "bench": "pipeline",
        **setup,
        "seconds": round(ended - began, 2),
        "steps_per_s": round(rate, 1),
        "frames_per_s": round(rate * rollouts.frame_skip, 1),
        "env_steps_per_s": round(alone_rate, 1),
        "vs_env": round(rate / alone_rate, 4),
        "worker_busy": round(busy / (threads * (ended - began)), 4),
        **shares(recorded, lanes, slots, *window),
        "dropped_spans": recorded.dropped,
    }


def shares(spans: trace.Spans, lanes: int, slots: int, begin: int, end: int) -> dict[str, Any]:
    """Compute the utilization of lanes and GPU during an interval of a trace.

    Args:
        spans: The trace.
        lanes: Number of lanes.
        slots: Slots per lane.
        begin: Start of the interval, in nanoseconds of time.perf_counter_ns().
        end: End of the interval, likewise.

    Returns:
        gpu_busy, rows, forward_us, forward_gpu_us, forward_rows and by_lane, as pipeline() describes them.
    """
    lane_of = spans.lanes(slots)
    inside = (spans.end > begin) & (spans.begin < end)
    spans, lane_of = spans.within(begin, end), lane_of[inside]
    seconds = (end - begin) * 1e-9
    calls, kernels = spans.kind == trace.CALL, spans.kind == trace.DEVICE
    on_gpu = bool(kernels.any())
    by_lane = []
    for lane in range(lanes):
        own = spans.where((lane_of == lane) & calls)
        share: dict[str, float | None] = {
            name: own.seconds(name) / seconds for name in ("observe", "step", "reset", "forward")
        }
        share["gpu"] = spans.where((lane_of == lane) & kernels).seconds() / seconds if on_gpu else None
        share["other"] = 1 - own.covered_seconds() / seconds
        by_lane.append({name: None if value is None else round(value, 4) for name, value in share.items()})
    forwards = spans.where(calls & (spans.name == "forward"))
    weights = spans.where(calls & np.isin(spans.name, ("init", "perturb", "prepare")))
    count = max(1, len(forwards))
    return {
        "gpu_busy": round(spans.where(kernels).covered_seconds() / seconds, 4) if on_gpu else None,
        "rows": round(weights.seconds() / (lanes * seconds), 4),
        "forward_us": round(1e6 * forwards.seconds() / count, 1),
        "forward_gpu_us": round(1e6 * spans.where(kernels).seconds() / count, 1) if on_gpu else None,
        "forward_rows": round(float(forwards.argument.sum()) / count, 2),
        "by_lane": by_lane,
    }


def _write(text: str, path: Path, mode: str) -> None:
    try:
        with path.open(mode) as file:
            file.write(text)
    except OSError as error:
        raise cannot_write(f"the trace {path}", error) from None
