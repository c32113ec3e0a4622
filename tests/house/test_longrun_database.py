"""A run folder of the format before run.db, once converted, has what the old files say."""

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.longrun_database import convert
from neuroevo.cli import app
from neuroevo.core.errors import UserError
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from tests.support.databases import query

LONG = Path(__file__).parents[2] / "experiments/longruns/frostbite_seed0"
COUNT = 5
LINE = """
WITH RECURSIVE line (id, parent, seed, scale) AS (
  SELECT id, parent, seed, scale FROM genomes WHERE id = (SELECT elite FROM generations WHERE generation = ?)
  UNION ALL SELECT next.id, next.parent, next.seed, next.scale FROM genomes AS next JOIN line ON next.id = line.parent
)
SELECT seed, scale FROM line ORDER BY id
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """The first generations of a real run, and the members of one that is not tested yet."""
    folder = tmp_path_factory.mktemp("old")
    for name in ("config.toml", "info.json", "log.txt"):
        (folder / name).write_bytes((LONG / name).read_bytes())
    for name, lines in (("metrics.jsonl", COUNT), ("elites.jsonl", COUNT), ("metrics.csv", COUNT + 1)):
        (folder / name).write_bytes(b"".join((LONG / name).read_bytes().splitlines(keepends=True)[:lines]))
    with (LONG / "members.bin").open("rb") as file, (folder / "members.bin").open("wb") as copy:
        for _ in range(COUNT + 1):
            head = file.read(16)
            copy.write(head + file.read(sum(struct.unpack("<IIII", head)[:3])))
    return folder


@pytest.fixture(scope="module")
def new(old, tmp_path_factory):
    path = tmp_path_factory.mktemp("new") / "run"
    convert(old, path)
    return path


def old_members(folder):
    """Of each generation the columns of members.bin, and where its episodes ended."""
    data, found = (folder / "members.bin").read_bytes(), []
    while data:
        head, columns, ended, _ = struct.unpack_from("<IIII", data)
        about = json.loads(data[16 : 16 + head])
        count, values = about["members"], zlib.decompress(data[16 + head : 16 + head + columns])
        kinds = {"parents": ("<i4", 2), "seeds": ("<i8", 1), "scales": ("<f4", 1), "kinds": ("|i1", 1)}
        row = {}
        for name, (dtype, width) in {**kinds, "fitness": ("<f8", 1), "steps": ("<i8", 1)}.items():
            row[name] = np.frombuffer(values, dtype, count * width)
            values = values[row[name].nbytes :]
        data = data[16 + head + columns :]
        row["behaviors"] = np.frombuffer(zlib.decompress(data[:ended]), about["dtype"]).reshape(count, -1)
        found.append({**row, "parents": row["parents"].reshape(-1, 2)})
        data = data[ended:]
    return found


def test_metrics_are_those_of_the_old_files(old, new):
    assert (new / "metrics.csv").read_bytes() == (old / "metrics.csv").read_bytes()
    rows = [json.loads(line) for line in (old / "metrics.jsonl").read_text().splitlines()]
    assert RunReader(new).rows() == [{key: value for key, value in row.items() if key != "crc32"} for row in rows]
    info = json.loads((old / "info.json").read_text())
    assert RunReader(new).about().info == info


def test_elites_have_the_mutations_of_the_old_files(old, new):
    chain = []
    for generation, line in enumerate((old / "elites.jsonl").read_text().splitlines()):
        elite = json.loads(line)["elite"]
        chain = [*chain[: elite["same"]], *map(tuple, elite["chain"])]
        assert query(new, LINE, generation) == [(elite["base"], None), *chain]
    assert len(chain) > 1 and query(new, "SELECT count(*) FROM generations") == [(COUNT,)]


def test_members_and_their_parents_are_those_of_the_old_files(old, new):
    reader, before = MembersReader(new), old_members(old)
    assert reader.generations == COUNT == len(before) - 1
    for generation in range(COUNT):
        found, expected = reader.read(generation), before[generation]
        root = expected["parents"][:, 0] < 0
        assert np.array_equal(found.parents[~root], expected["parents"][~root]) and (found.parents[root] == -1).all()
        for name in ("seeds", "scales", "fitness", "steps", "behaviors"):
            assert np.array_equal(getattr(found, name), expected[name]), (generation, name)
    line = [(COUNT - 1, 7)]
    while (parent := tuple(before[line[-1][0]]["parents"][line[-1][1]].tolist()))[0] >= 0:
        line.append(parent)
    assert len(line) > 2 and reader.lineage(COUNT - 1, 7) == line
    assert query(new, "PRAGMA foreign_key_check") == [] and query(new, "PRAGMA integrity_check") == [("ok",)]


def test_commands_read_it(old, new, tmp_path):
    curves, page, first = tmp_path / "curves.png", tmp_path / "page", old_members(old)[0]
    member = min(np.flatnonzero(first["fitness"]), key=first["steps"].__getitem__)  # whose game is over soon
    for words in (["plot", new, "--out", curves], ["inspect", new, "--export", page, "--member", f"0:{member}"]):
        result = CliRunner().invoke(app, list(map(str, words)))
        assert result.exit_code == 0, result.output
    assert curves.read_bytes().startswith(b"\x89PNG")
    # Its episode has the fitness of the old run.
    assert '"same":true' in (page / f"data/play/0/0/{member}/0.js").read_text()


@pytest.mark.parametrize("name", ["members.bin", "metrics.jsonl", "elites.jsonl"])
def test_a_damaged_folder_is_refused(old, tmp_path, name):
    folder = tmp_path / "damaged"
    folder.mkdir()
    for file in old.iterdir():
        data = bytearray(file.read_bytes())
        if file.name == name:
            data[len(data) // 2] ^= 1
        (folder / file.name).write_bytes(data)
    with pytest.raises(ValueError, match=rf"{name} is damaged"):
        convert(folder, tmp_path / "run")
    assert not (tmp_path / "run" / "run.db").exists()


def test_nothing_is_written_over(old, new):
    with pytest.raises(UserError, match="already holds a run"):
        convert(old, new)
