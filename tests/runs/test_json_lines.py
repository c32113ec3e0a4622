"""Sums of the lines of metrics.jsonl and elites.jsonl: a change is told by file and line, and never read in silence."""

import json
import os
import re
import subprocess
import sys
import zlib
from itertools import pairwise

import pytest
from neuroevo.runs.elites import newest_elite, read_elites
from neuroevo.runs.json_lines import DamagedLine, sealed
from neuroevo.runs.metrics_rows import read_rows

from neuroevo.core.errors import UserError
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.reader import RunReader
from tests.support.mutants import bounded
from tests.support.odd_metrics import NAME
from tests.support.runs import checkpoint_after, config, contents, interrupted_run, new_run, play, results

FILES = {"metrics.jsonl": read_rows, "elites.jsonl": read_elites}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    new_run(path)
    return path


@pytest.mark.parametrize("name", FILES)
def test_each_line_ends_in_its_sum(whole, name):
    for line in (whole / name).read_bytes().splitlines():
        row = json.loads(line)
        assert list(row)[-1] == "crc32"
        assert zlib.crc32(line.split(b', "crc32"')[0] + b"}") == int(row["crc32"], 16)
    assert all("crc32" not in row for row in read_rows(whole))


def test_pandas_reads_them(whole):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_json(whole / "metrics.jsonl", lines=True)
    assert list(table["validation_mean"]) == pytest.approx([row["validation_mean"] for row in read_rows(whole)])


@pytest.mark.parametrize("name", FILES)
def test_every_changed_digit_is_noticed(whole, tmp_path, name):
    data = (whole / name).read_bytes()
    expected = FILES[name](whole)
    digits = [match.start() for match in re.finditer(rb"\d", data)]
    for at in digits[:: max(1, len(digits) // 150)]:
        other = b"%d" % ((data[at] - ord("0") + 3) % 10)
        (tmp_path / name).write_bytes(data[:at] + other + data[at + 1 :])
        number = data[:at].count(b"\n") + 1
        with pytest.raises(DamagedLine, match=f"^line {number} of {tmp_path / name} is damaged: .*expected"):
            FILES[name](tmp_path)
    (tmp_path / name).write_bytes(data)
    assert FILES[name](tmp_path) == expected


@pytest.mark.parametrize("name", FILES)
def test_lines_in_another_order(whole, tmp_path, name):
    first, second, *others = (whole / name).read_bytes().splitlines(keepends=True)
    for lines in ([second, first, *others], [first, *others], [first, first, second, *others]):
        (tmp_path / name).write_bytes(b"".join(lines))
        with pytest.raises(DamagedLine, match="generation is .*, expected"):
            FILES[name](tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_lines_without_a_sum_are_read(whole, tmp_path, name):
    """As they were before there were sums, and as somebody leaves them who corrects them."""
    lines = [json.loads(line) for line in (whole / name).read_text().splitlines()]
    for line in lines[:3]:
        del line["crc32"]
    (tmp_path / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert FILES[name](tmp_path) == FILES[name](whole)


def without(line):
    row = json.loads(line)
    del row["crc32"]
    return row


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("metrics.jsonl", {"crd32": "00000000"}, "crd32 is '00000000', expected a finite number"),
        ("metrics.jsonl", {"crc32": "0"}, "crc32 is '0', expected eight"),
        ("metrics.jsonl", {"fitness": [1.0, "x"]}, "fitness is .*, expected a list of finite numbers"),
        ("metrics.jsonl", {"steps_total": True}, "steps_total is 'True', expected"),
        ("metrics.jsonl", {"steps_total": 10**400}, "steps_total is .*, expected"),
        ("elites.jsonl", {"crd32": "00000000"}, "it has generation, elite, crd32, expected"),
        ("elites.jsonl", {"elite": 5}, "not a genome: 5"),
        ("elites.jsonl", {"normalizer": {"mean": [1.0], "std": ["1"]}}, "std of a normalizer"),
        ("elites.jsonl", {"normalizer": {"mean": [10**400], "std": [1]}}, "not a normalizer"),
    ],
)
def test_what_a_line_without_a_sum_may_hold(whole, tmp_path, name, change, message):
    row = without((whole / name).read_text().splitlines()[0])
    (tmp_path / name).write_text(json.dumps({**row, **change}) + "\n")
    with pytest.raises(DamagedLine, match=f"line 1 of .*{name} is damaged: .*{message}"):
        FILES[name](tmp_path)


def test_a_line_with_a_sum_has_a_list_of_fitness(whole, tmp_path):
    """Text would become a column of metrics.csv, which half a pair of surrogates cannot be written to."""
    row = json.dumps({**without((whole / "metrics.jsonl").read_text().splitlines()[0]), "fitness": "\ud800"})
    line = f'{row[:-1]}, "crc32": "{zlib.crc32(row.encode()):08x}"}}\n'
    (tmp_path / "metrics.jsonl").write_text(line)
    with pytest.raises(DamagedLine, match="line 1 of .* is damaged: fitness is .*, expected a list of finite numbers"):
        read_rows(tmp_path)


def damage(path, number):
    """Changes a digit of a seed in a line of elites.jsonl, from 1."""
    lines = (path / "elites.jsonl").read_bytes().splitlines(keepends=True)
    at = re.search(rb'"chain": \[\[(\d+)|"base": (\d+)', lines[number - 1]).end() - 1
    line = bytearray(lines[number - 1])
    line[at] ^= 1  # another digit
    lines[number - 1] = bytes(line)
    (path / "elites.jsonl").write_bytes(b"".join(lines))


def test_a_reader_says_what_to_do(tmp_path):
    new_run(tmp_path / "run")
    damage(tmp_path / "run", 2)
    with pytest.raises(UserError, match=r"line 2 of .*elites.jsonl is damaged: .* from a copy, .* --resume .*run$"):
        RunReader(tmp_path / "run").elite()


def test_a_resumed_run_goes_back_to_before_the_damage(tmp_path, whole_run):
    path = interrupted_run(tmp_path / "run", 4)
    damage(path, 3)  # of generation 2
    folder = RunFolder.resume(path)
    assert folder.state.generation == 2
    assert [each.path for each in folder.unusable] == [checkpoint_after(path, 4), checkpoint_after(path, 3)]
    assert all("line 3 of" in each.reason for each in folder.unusable)
    play(folder)
    assert results(path) == whole_run()


def test_damage_before_every_checkpoint_changes_nothing(tmp_path):
    path = interrupted_run(tmp_path / "run", 4)
    damage(path, 1)
    checkpoint_after(path, 0).unlink(missing_ok=True)
    there = contents(path)
    with pytest.raises(UserError, match=r"no checkpoint to go on from:\n.*line 1 of .*elites.jsonl is damaged"):
        RunFolder.resume(path)
    with pytest.raises(UserError, match=r"line 1 of .*elites.jsonl is damaged"):
        RunFolder.fork(tmp_path / "fork", path)
    with pytest.raises(UserError, match=r"line 1 of .*elites.jsonl is damaged"):
        RunFolder.fork(tmp_path / "fork", path, generation=4)
    assert contents(path) == there and not (tmp_path / "fork").exists()


def test_a_metric_is_not_called_as_the_sum_is(tmp_path):
    from neuroevo.training.record import checked_metrics

    for metrics in ({"crc32": 1.0}, {"steps_total": 1}, {1: 2.0}, {"\ud800": 1.0}, {"x": 10**400}, {"x": "1"}):
        with pytest.raises(UserError, match=re.escape(repr(next(iter(metrics)))[1:-1])):
            checked_metrics("mine", metrics)
    assert checked_metrics("mine", {"loss, mean": True, "a\rb": None}) == {"loss, mean": 1, "a\rb": None}
    assert NAME


@pytest.mark.parametrize("name", [*FILES, "metrics.csv"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_are_not_waited_for(tmp_path, whole, name, kind):
    path = tmp_path / name
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    code = (
        "import sys; from pathlib import Path; from neuroevo.runs import elites, metrics_csv, metrics_rows\n"
        "read = {'metrics.jsonl': metrics_rows.read_rows, 'elites.jsonl': elites.read_elites}\n"
        "read.get(sys.argv[2], metrics_csv.last_csv_row)(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and f"Not a regular file: '{path}'" in done.stderr


def test_a_run_with_a_pipe_is_refused(tmp_path):
    path = interrupted_run(tmp_path / "run", 2)
    (path / "elites.jsonl").unlink()
    os.mkfifo(path / "elites.jsonl")
    with pytest.raises(UserError, match=r"elites.jsonl is a pipe, expected a file"):
        RunFolder.resume(path)


def test_elites_of_long_chains_take_memory_for_what_is_written(tmp_path):
    """1 MB of lines, each of which shares 10,000 mutations with the one before: 80 kB each if they were made whole."""
    genome = {"base": 1, "network": 0, "same": 0, "chain": [[seed, 0.5] for seed in range(10_000)]}
    rows = [{"generation": 0, "elite": genome}]
    rows += [{"generation": n, "elite": {**genome, "same": 10_000, "chain": []}} for n in range(1, 6000)]
    (tmp_path / "elites.jsonl").write_bytes(b"".join(map(sealed, rows)))
    with bounded(16):
        last, elite = newest_elite(tmp_path)
    assert last == 5999 and len(elite.genome.mutations) == 10_000


def test_a_file_without_line_ends(tmp_path):
    """As a power failure may leave it: zeros as far as the file system has room."""
    with (tmp_path / "elites.jsonl").open("wb") as file:
        file.truncate(1 << 40)
    with bounded(1100), pytest.raises(DamagedLine, match="line 1 of .* has more than"):
        newest_elite(tmp_path)


def test_a_torn_last_line_is_not_there(tmp_path, whole):
    for name, read in FILES.items():
        *others, last = (whole / name).read_bytes().splitlines(keepends=True)
        for cut in (1, len(last) // 2, len(last) - 1):
            (tmp_path / name).write_bytes(b"".join(others) + last[:cut])
            assert read(tmp_path) == read(whole)[:-1]


def test_lines_grow_by_what_a_checkpoint_remembers(tmp_path):
    path = tmp_path / "run"
    play(RunFolder.create(path, config(checkpoints={"keep_last": 9})))
    lengths = []
    for finished in range(6):
        _, body, _ = checkpoint_after(path, finished).read_bytes().split(b"\n", 2)
        lengths.append(json.loads(body)["lengths"])
    for name in FILES:
        sizes = [len(line) for line in (path / name).read_bytes().splitlines(keepends=True)]
        assert [after[name] - before[name] for before, after in pairwise(lengths)] == sizes
