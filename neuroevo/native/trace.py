"""Time traces of the native threads (custom_ops/core/trace.h), by lane, and their export as JSON for Perfetto."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroevo.native.ffi import ref
from neuroevo.native.library import call, core

CALL, TASK, DEVICE = range(3)  # kinds of spans: calls into environments or networks, tasks of the pool, GPU kernels
_SPANS_PER_THREAD = 1 << 20  # 48 MB if all are used, enough for minutes of a rollout
_SPAN = np.dtype(
    [
        ("name", "u8"),
        ("begin", "i8"),
        ("end", "i8"),
        ("argument", "i8"),
        ("link", "u8"),
        ("thread", "i4"),
        ("kind", "i4"),
    ]
)


@dataclass(frozen=True)
class Spans:
    """N spans of time that native threads recorded.

    Attributes:
        name: Operation of the thread, object [N].
        begin: Start, int64 [N], in nanoseconds of time.perf_counter_ns().
        end: End, int64 [N], likewise.
        argument: int64 [N]. For "observe", "step" and "reset", the first slot; for "forward", "init", "perturb" and
            "prepare", the number of rows; for a task, its index within its job.
        link: uint64 [N], equal for an "observe" and the "forward" that reads its observations.
        thread: Number of the thread, int32 [N].
        kind: CALL, TASK or DEVICE, int32 [N].
        dropped: Number of further spans that did not fit in the buffers.
    """

    name: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    argument: np.ndarray
    link: np.ndarray
    thread: np.ndarray
    kind: np.ndarray
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.begin)

    def where(self, chosen: np.ndarray) -> Spans:
        """Select spans.

        Args:
            chosen: A mask, bool [N], or indices.

        Returns:
            The selected spans.
        """
        return Spans(
            self.name[chosen],
            self.begin[chosen],
            self.end[chosen],
            self.argument[chosen],
            self.link[chosen],
            self.thread[chosen],
            self.kind[chosen],
            self.dropped,
        )

    def within(self, begin: int, end: int) -> Spans:
        """Return the parts of the spans between two points of time, in nanoseconds of time.perf_counter_ns()."""
        parts = self.where((self.end > begin) & (self.begin < end))
        np.clip(parts.begin, begin, end, out=parts.begin)
        np.clip(parts.end, begin, end, out=parts.end)
        return parts

    def seconds(self, name: str | None = None) -> float:
        """Sum the durations of the spans, in seconds.

        Args:
            name: Name of the spans to sum; None for all spans.
        """
        chosen = slice(None) if name is None else self.name == name
        return float((self.end[chosen] - self.begin[chosen]).sum()) * 1e-9

    def covered_seconds(self) -> float:
        """Return the duration of the union of the spans, in seconds."""
        order = np.argsort(self.begin, kind="stable")
        begin, end = self.begin[order], self.end[order]
        before = np.concatenate([begin[:1], np.maximum.accumulate(end)[:-1]])  # when the last of the earlier spans ends
        return float(np.maximum(0, end - np.maximum(begin, before)).sum()) * 1e-9

    def lanes(self, slots: int) -> np.ndarray:
        """Return the lane of each span.

        A call to an environment has a slot of the lane as its argument. A forward and its kernels belong to the lane
        whose observations they read: that of the last preceding "observe" that wrote to the same memory.

        Args:
            slots: Slots per lane.

        Returns:
            int64 [N]; -1 where the lane is unknown.
        """
        of_env = (self.kind == CALL) & np.isin(self.name, ("observe", "step", "reset"))
        lanes = np.where(of_env & (self.argument >= 0), self.argument // slots, -1)
        observes = np.flatnonzero(of_env & (self.name == "observe"))
        forwards = np.flatnonzero((self.kind != TASK) & (self.name == "forward"))
        both = np.concatenate([observes, forwards])
        when = np.concatenate([self.end[observes], self.begin[forwards]])
        both = both[np.lexsort((np.isin(both, forwards), when, self.link[both]))]
        last = np.maximum.accumulate(np.where(np.isin(both, observes), np.arange(len(both)), -1))
        source = both[np.maximum(last, 0)]
        known = (last >= 0) & (self.link[source] == self.link[both])
        lanes[both] = np.where(known, lanes[source], -1)
        return lanes


def start(spans_per_thread: int = _SPANS_PER_THREAD) -> None:
    """Start a recording and discard the previous one.

    Args:
        spans_per_thread: Capacity of each thread's buffer; further spans are counted but dropped.

    Raises:
        ValueError: The capacity is less than 1 or more than 2^24.
    """
    call("trace_start", spans_per_thread, raises=lambda _, words: ValueError(words))


def stop() -> Spans:
    """End the recording and return the spans that have ended."""
    core().neuroevo_trace_stop()
    count, dropped = ctypes.c_int64(), ctypes.c_int64()
    call("trace_read", None, 0, ref(count), ref(dropped))
    raw = np.zeros(count.value, _SPAN)
    call("trace_read", raw, len(raw), ref(count), ref(dropped))
    addresses, which = np.unique(raw["name"], return_inverse=True)
    names = np.array([ctypes.string_at(int(address)).decode() for address in addresses], object)
    return Spans(
        names[which],
        raw["begin"],
        raw["end"],
        raw["argument"],
        raw["link"],
        raw["thread"],
        raw["kind"],
        dropped.value,
    )


def chrome_json(spans: Spans, lanes: int, slots: int, begin: int, end: int) -> dict[str, Any]:
    """Convert spans to the JSON that chrome://tracing and Perfetto display.

    There is a track for each lane, with its gaps named "other" (the queue, the loop itself, new weights); a track
    for each thread, with the tasks of the pool and the calls that make weights; and, if the GPU was used, a track for
    the kernels of each lane.

    Args:
        spans: The recording.
        lanes: Number of lanes.
        slots: Slots per lane.
        begin: Start of the displayed time, in nanoseconds of time.perf_counter_ns().
        end: End of the displayed time, likewise.

    Returns:
        The JSON object.
    """
    lane_of = spans.lanes(slots)
    spans, lane_of = spans.within(begin, end), lane_of[(spans.end > begin) & (spans.begin < end)]
    events: list[dict[str, Any]] = []
    for lane in range(lanes):
        events.append(_label("thread_name", f"lane {lane}", 1, lane))
        own = spans.where((lane_of == lane) & (spans.kind == CALL))
        events.extend(_events(_with_gaps(own, begin, end), begin, 1, lane))
    by_threads = (spans.kind == TASK) | ((spans.kind == CALL) & np.isin(spans.name, ("init", "perturb", "prepare")))
    for number, thread in enumerate(np.unique(spans.thread[by_threads])):
        events.append(_label("thread_name", f"thread {number}", 2, number))
        own = spans.where(by_threads & (spans.thread == thread))
        rows = zip(own.name, own.begin, own.end, own.argument, strict=True)
        events.extend(_events(rows, begin, 2, number))
    processes = {1: "lanes", 2: "worker threads"}
    if (spans.kind == DEVICE).any():
        processes[3] = "GPU"
        for lane in range(lanes):
            own = spans.where((lane_of == lane) & (spans.kind == DEVICE))
            events.append(_label("thread_name", f"kernels for lane {lane}", 3, lane))
            rows = zip(own.name, own.begin, own.end, own.argument, strict=True)
            events.extend(_events(rows, begin, 3, lane))
    events.extend(_label("process_name", name, process, 0) for process, name in processes.items())
    return {"displayTimeUnit": "ms", "traceEvents": events}


Row = tuple[str, int, int, int]  # name, begin, end, argument


def _with_gaps(spans: Spans, begin: int, end: int) -> Iterator[Row]:
    """Yield the spans of one lane in order, and "other" for the gaps between them."""
    reached = begin
    for i in np.argsort(spans.begin, kind="stable"):
        if spans.begin[i] > reached:
            yield "other", reached, spans.begin[i], 0
        yield spans.name[i], spans.begin[i], spans.end[i], spans.argument[i]
        reached = max(reached, spans.end[i])
    if end > reached:
        yield "other", reached, end, 0


def _events(rows: Iterator[Row] | Sequence[Row], begin: int, process: int, track: int) -> Iterator[dict[str, Any]]:
    for name, start_ns, end_ns, argument in rows:
        yield {
            "ph": "X",
            "name": name or "task",
            "ts": int(start_ns - begin) / 1e3,  # microseconds
            "dur": int(end_ns - start_ns) / 1e3,
            "pid": process,
            "tid": track,
            "args": {"n": int(argument)},
        }


def _label(what: str, name: str, process: int, track: int) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": name}}
