"""Contents of the folder of a run or a sweep, without values that depend on the clock.

    differences(run_contents(one), run_contents(other)) == []  # two runs that did the same

Clocks are compared as zeros: seconds_*, steps_per_s and idle_share of metrics and events. An unexpected file in the
folder, such as a temporary one, is also a difference. Not compared are:

- of run.db the numbers of rows, sessions, and pending evaluations: which of an elite's test episodes were over
- of event files: names, times, what says that a session ends, and events that a later file takes back
- log.txt, to which a session adds its lines. No line may be of another kind than these have, those of generations have
  to be the rows of run.db, and the last one says that the run is finished
- of a trial that the pruner has ended all that it has played afterwards, while its process was being stopped
- of a sweep what its runs printed (.out), for the same reason; and table.txt and curves_time.*, whose numbers table.csv
  and runs.csv have, where seconds are left out
"""

from __future__ import annotations

import csv
import io
import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData
from tensorboardX.record_writer import masked_crc32c

from neuroevo.runs.database import DATABASE
from neuroevo.runs.paths import CONFIG, CSV, LOG, TENSORBOARD
from neuroevo.sweeps.study import DATABASE as STUDY
from neuroevo.sweeps.study import Study
from neuroevo.training.record import describe_row
from tests.support.databases import CLOCKED, database_contents, info_of, read_rows

_MOVING = ("started", "git_commit")  # of where it was made
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING|ERROR) ")
_SESSION = (  # what log.txt says of each time that a run is started
    r".+ on .+ with .+ evaluated on the .+, from generation \d+",
    r".+/run\.db contains the outcomes of \d+ episodes, which are not played again",
    r"stopped in generation \d+: (KeyboardInterrupt|Terminated)\(\)",  # the second by its suite's end
    r"finished after .+",  # by a kill between that and the run's end, which comes once more then
)
_TIMED = ("table.txt", "curves_time.png", "curves_time.pdf")


def differences(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """Return the names of files that only one folder has, or whose contents differ."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def run_contents(path: Path) -> dict[str, object]:
    """Return the files of a run's folder by name, without clocks; folders end with a slash."""
    return {name: _read(path, name) for name in _names(path)} | _all_events(path)


def sweep_contents(path: Path) -> dict[str, object]:
    """Return the files of the folder of a sweep, whose trials are finished."""
    runs = [file.parent for file in sorted(path.rglob(CONFIG))]
    found: dict[str, object] = {}
    stopped = {path / trial.folder: trial.stopped for trial in Study(path).trials() if trial.status == "stopped"}
    for run in runs:
        if run in stopped:  # and its process some generations later
            rows = read_rows(run)[: stopped[run]]
            found[str(run.relative_to(path))] = [_without_clocks(row) for row in rows]
            continue
        found |= {f"{run.relative_to(path)}/{name}": data for name, data in run_contents(run).items()}
    for file in sorted(path.rglob("*")):
        if not any(run == file or run in file.parents for run in runs):
            name = file.relative_to(path).as_posix()
            found[name + "/" * file.is_dir()] = b"" if file.is_dir() else _of_sweep(path, name)
    return found


def _names(path: Path) -> Iterator[str]:
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if not name.startswith(f"{TENSORBOARD}/"):
            yield name + "/" * file.is_dir()


def _read(path: Path, name: str) -> object:
    readers: dict[str, Callable[[Path], bytes]] = {CSV: _table, LOG: _log}
    if name.endswith("/"):
        return b""
    if name == DATABASE:
        return {**database_contents(path), "info": _info(path)}
    return readers[name](path) if name in readers else (path / name).read_bytes()


def _of_sweep(path: Path, name: str) -> bytes:
    if name == STUDY:
        return _study(path)
    if name in _TIMED or name.endswith(".out"):
        return b""
    if name.endswith(".csv"):
        return _timeless_csv(path / name).replace(str(path).encode(), b"OUT")
    return (path / name).read_bytes()


def _study(path: Path) -> bytes:
    """Each trial as it ended, and what the search and the pruner know of it."""
    study = Study(path)
    known = {each.user_attrs["number"]: (each.value, each.intermediate_values) for each in study.study.get_trials()}
    return repr([(trial, known[trial.number]) for trial in study.trials()]).encode()


def _without_clocks(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: 0 if _is_clock(key) else value for key, value in row.items()}


def _is_clock(name: str) -> bool:
    return name.startswith("seconds") or name in CLOCKED


def _table(path: Path) -> bytes:
    return _timeless_csv(path / CSV)


def _timeless_csv(file: Path) -> bytes:
    names, *rows = csv.reader(io.StringIO(file.read_text()), strict=True)
    assert _as_csv([names, *rows]) == file.read_bytes(), f"{file} is not as tables are written"
    return _as_csv([names, *(list(_without_clocks(dict(zip(names, row, strict=True))).values()) for row in rows)])


def _as_csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _info(path: Path) -> dict[str, Any]:
    text = json.dumps(info_of(path)).replace(str(path), "RUN").replace(str(path.parent), "OUT")  # of a fork's donor
    info = {key: value for key, value in json.loads(text).items() if key not in _MOVING}
    sessions, last = info.pop("resumed"), 0
    for session in sessions:
        generation = session.pop("generation")
        assert generation >= last, f"{path} has generation {generation} after {last}"
        last = generation
        same = {key: value for key, value in session.items() if key not in _MOVING}
        if "forked_from" in info and session is sessions[0]:  # a sweep made the fork, and another process trained it
            info = {**info, **same}
        assert same == {key: info[key] for key in same}, f"{path} has a session {session}"
    return info


def _log(path: Path) -> bytes:
    """Its last line, once the others are checked."""
    rows = {f"generation {row['generation']}": _until_clocks(describe_row(row)) for row in read_rows(path)}
    lines = []
    for line in (path / LOG).read_text().splitlines():
        stamp = _STAMP.match(line)
        assert stamp, f"{path / LOG} has {line!r}"
        lines.append(line[stamp.end() :])
    for line in lines[:-1]:
        known = any(re.fullmatch(kind, line) for kind in _SESSION) or rows.get(line.partition(":")[0])
        assert known is True or known == _until_clocks(line), f"{path / LOG} has {line!r}"
    return lines[-1].encode()


def _until_clocks(line: str) -> str:
    """A line about a generation up to its steps, which the clock's numbers follow."""
    return re.sub(r"(steps [\d,]+), .*", r"\1", line)


def _all_events(path: Path) -> dict[str, object]:
    if not (path / TENSORBOARD).is_dir():
        return {}
    folders = [path / TENSORBOARD, path / TENSORBOARD / "frames"]
    others = [each for each in (path / TENSORBOARD).rglob("*") if each.is_file() and not _is_event_file(each)]
    return {str(each.relative_to(path)): _events(each) for each in folders} | {
        str(each.relative_to(path)): each.read_bytes() for each in others
    }


def _is_event_file(file: Path) -> bool:
    return re.fullmatch(r"events\.out\.tfevents\.\d+\..+\.\d{6}", file.name) is not None


def _events(folder: Path) -> list[bytes]:
    """What TensorBoard shows of them: a file that starts at a step replaces what earlier ones have from there on."""
    found: list[Event] = []
    experiment: dict[str, bytes] = {}  # the hyperparameters, which every session writes
    files = sorted(each for each in folder.iterdir() if each.is_file())
    for file in files:
        for event in _records(file, cut=file != files[-1]):
            event.wall_time = 0
            if event.session_log.status == SessionLog.START:
                found = [each for each in found if each.step < event.step]
            values = [value for value in event.summary.value if not _is_clock(value.tag.replace("/", "_"))]
            if values and values[0].tag == "_hparams_/session_end_info":
                continue
            if values and values[0].tag.startswith("_hparams_"):
                written = HParamsPluginData.FromString(values[0].metadata.plugin_data.content)
                experiment[values[0].tag] = written.SerializeToString(deterministic=True)
            elif values:
                del event.summary.value[:]
                event.summary.value.extend(values)
                found.append(event)
    return [*experiment.values(), *(event.SerializeToString(deterministic=True) for event in found)]


def _records(file: Path, cut: bool) -> Iterator[Event]:
    """The events of a file; the last one may be cut off where a kill may have done so, and is left out then."""
    data, at = file.read_bytes(), 0
    while at < len(data):
        length = struct.unpack_from("<Q", data, at)[0] if at + 8 <= len(data) else len(data)
        if cut and at + length + 16 > len(data):
            return
        head, body = data[at : at + 8], data[at + 12 : at + 12 + length]
        sums = struct.unpack_from("<I", data, at + 8) + struct.unpack_from("<I", data, at + 12 + length)
        assert sums == (masked_crc32c(head), masked_crc32c(body)), f"{file} is damaged at byte {at}"
        yield Event.FromString(body)
        at += length + 16
