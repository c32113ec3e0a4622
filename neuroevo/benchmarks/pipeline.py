"""`neuroevo bench pipeline`: what CPU threads, lanes and the GPU do during rollouts, and whether emulators wait."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from neuroevo.benchmarks import rates
from neuroevo.core.errors import cannot_write
from neuroevo.native import library, trace

_MARGIN_SECONDS = 0.1  # spans are recorded when they end: whole ones are needed on both sides of what is measured
_SHOWN_SECONDS = 1.0  # of the end, in the trace's file: more is slow to look at


def pipeline(
    game: str, network: str, seconds: float, trace_file: Path | None = None, **options: object
) -> dict[str, object]:
    """Rates and busy shares of rollouts; options as those of bench.Rollout. Writes the last second as JSON to a file.

    Returns steps_per_s and frames_per_s; of the same threads with environments alone, in turns with the rollout,
    env_steps_per_s, and vs_env, the ratio. Shares of the time: worker_busy (of the worker threads'), gpu_busy (some
    kernel is at work; None on the CPU), rows (of the lanes' time: making weights), and for each lane observe, step,
    reset, forward, of which gpu (kernels of its forward calls, None on the CPU), and other: queue, TensorFlow, weights.
    forward_us, forward_gpu_us: mean time of a call and of its kernels. forward_rows: networks of a call.
    dropped_spans: for which the trace had no room; the shares are too small where it is not 0.
    """
    if trace_file is not None:
        _write("", trace_file, "a")  # what cannot be written is said at once; what is there stays until there is more
    with rates.Rollout(game, network, **options) as rollouts:
        setup, threads, lanes, slots = rollouts.setup, rollouts.threads, rollouts.lanes, rollouts.slots
        alone = [rates.env(game, max(threads, lanes * slots), threads, seconds / 2)]
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
    alone.append(rates.env(game, max(threads, lanes * slots), threads, seconds / 2))
    window = int(began * 1e9), int(ended * 1e9)
    if trace_file is not None:
        shown = max(window[0], window[1] - int(_SHOWN_SECONDS * 1e9)), window[1]
        _write(json.dumps(trace.chrome_json(recorded, lanes, slots, *shown)), trace_file, "w")
    rate = (steps - steps_before) / (ended - began)
    env_rate = sum(each["steps_per_s"] for each in alone) / len(alone)
    return {
        "bench": "pipeline",
        **setup,
        "seconds": round(ended - began, 2),
        "steps_per_s": round(rate, 1),
        "frames_per_s": round(rate * rollouts.frame_skip, 1),
        "env_steps_per_s": round(env_rate, 1),
        "vs_env": round(rate / env_rate, 4),
        "worker_busy": round(busy / (threads * (ended - began)), 4),
        **shares(recorded, lanes, slots, *window),
        "dropped_spans": recorded.dropped,
    }


def shares(spans: trace.Spans, lanes: int, slots: int, begin: int, end: int) -> dict[str, object]:
    """What the spans between two points of time, in nanoseconds, say of lanes and GPU: see pipeline()."""
    lane_of = spans.lanes(slots)
    inside = (spans.end > begin) & (spans.begin < end)
    spans, lane_of = spans.within(begin, end), lane_of[inside]
    seconds = (end - begin) * 1e-9
    calls, kernels = spans.kind == trace.CALL, spans.kind == trace.DEVICE
    on_gpu = bool(kernels.any())
    by_lane = []
    for lane in range(lanes):
        own = spans.where((lane_of == lane) & calls)
        share = {name: own.seconds(name) / seconds for name in ("observe", "step", "reset", "forward")}
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
