"""Convert a run folder of the format before run.db, such as those of experiments/longruns.

    python -m experiments.longrun_database experiments/longruns/frostbite_seed0 runs/frostbite_seed0

The new folder has the generations that were finished and tested, with all members: `inspect`, `plot`, `evaluate` and
`render` read it. It has no state, so the run cannot be resumed or forked.

metrics.jsonl, elites.jsonl   a line of JSON for each generation, whose last key is the CRC-32 of the others
members.bin                   for each generation the sizes of three parts, their CRC-32, and the parts: JSON, columns
                              and behaviors, the latter two compressed by zlib
"""

from __future__ import annotations

import argparse
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.config.load import load_run_config
from neuroevo.core.genome import GAUSSIAN, Center, Genome, LowRank, Scaled
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.tree import decode_kind
from neuroevo.runs.about import About, write_about
from neuroevo.runs.database import Database
from neuroevo.runs.generation_rows import rows_of, write_generation
from neuroevo.runs.genome_rows import GenomeWriter
from neuroevo.runs.members import write_members
from neuroevo.runs.paths import CONFIG, LOG, check_free
from neuroevo.runs.reader import RunReader
from neuroevo.runs.writer import new_database
from neuroevo.sessions.metrics_csv import CsvFile
from neuroevo.system.files import make_folder, write_atomically
from neuroevo.training.record import COLUMNS, EvaluationRecord, PhaseRecord, Record

_COLUMNS = (  # of members.bin: name, dtype, numbers of a member; novelty where it is measured
    *(("parents", "<i4", 2), ("seeds", "<i8", 1), ("scales", "<f4", 1), ("kinds", "|i1", 1)),
    *(("fitness", "<f8", 1), ("steps", "<i8", 1), ("novelty", "<f8", 1)),
)
_OF_ROOT, _IS_ROOT = -1, -2  # special values of a parent's generation; -3: the member is a seed


def convert(source: Path, into: Path) -> None:
    """Write a run with run.db.

    Args:
        source: The old folder, which is only read.
        into: The new folder, without a run.

    Raises:
        UserError: `into` holds a run, or the configuration is invalid.
        ValueError: The old folder is damaged.
    """
    check_free(into)
    config, info = load_run_config(source / CONFIG), json.loads((source / "info.json").read_text())
    rows, elites = _lines(source / "metrics.jsonl"), _lines(source / "elites.jsonl")
    genomes = _genomes([line["elite"] for line in elites])
    populations = _populations(source / "members.bin")
    sessions = [{**info, "generation": 0}, *info["resumed"]]

    def fill(database: Database) -> None:
        writer = GenomeWriter(database)
        batch = source / "reference.npy"
        reference = database.add_array(np.load(batch)) if batch.exists() else None
        write_about(database, About(config.toml(), config.origin(), {**info, "resumed": []}, reference))
        for row, line, elite, members in zip(rows, elites, genomes, populations, strict=False):
            if members[0].fitness.tolist() != row["fitness"]:
                raise ValueError(f"{source} has other members in generation {row['generation']} than its metrics say")
            write_generation(database, _record(row, elite, line.get("normalizer")), writer)
            write_members(database, row["generation"], *members, writer, behaviors=True)
        if (stored := len(rows_of(database))) != len(rows):
            raise ValueError(f"{source} has the members of {stored} generations, expected {len(rows)}")
        for each in sessions:
            before = [row["seconds_total"] for row in rows[: each["generation"]]]
            session = {key: value for key, value in each.items() if key not in ("generation", "resumed")}
            row = {"generation": each["generation"], "process": "{}", "info": json.dumps(session)}
            database.insert("sessions", {**row, "seconds": max(before, default=0.0), "ended": 1})

    make_folder(into)
    new_database(into, fill)
    write_atomically(into / CONFIG, config.toml().encode())
    write_atomically(into / LOG, (source / LOG).read_bytes())
    CsvFile(into, lambda: RunReader(into).rows(fitness=False))


def _lines(file: Path) -> list[dict[str, Any]]:
    """Read lines of JSON. Raise ValueError if a checksum is wrong."""
    found = []
    for number, line in enumerate(file.read_bytes().splitlines()):
        body, _, checksum = line.rpartition(b', "crc32": ')
        if b"%08x" % zlib.crc32(body + b"}") != checksum.strip(b'"}'):
            raise ValueError(f"line {number + 1} of {file} is damaged")
        found.append(json.loads(body + b"}"))
    return found


def _record(row: Mapping[str, Any], elite: Genome, normalizer: Mapping[str, Any] | None) -> Record:
    """Return the record of a line of metrics.jsonl, without numbers of episodes."""
    phases = [
        {"episodes": 0, "steps": row[f"steps_{name}"], "seconds": row[f"seconds_{name}"]}
        | {"failures": row[f"failures_{name}"]}
        for name in ("population", "validation", "test")
    ]
    same = ("generation", "max_episode_steps", "validation_mean", "steps_total", "frames_total", "seconds_total")
    seen = None
    if normalizer is not None:
        seen = Normalizer(row["generation"], np.array(normalizer["mean"]), np.array(normalizer["std"]))
    return Record(
        elite=elite,
        fitness=np.array(row["fitness"], np.float64),
        population=PhaseRecord(**phases[0]),
        validation=PhaseRecord(**phases[1]),
        test=EvaluationRecord(**phases[2], mean=row["test_mean"], standard_error=row["test_standard_error"]),
        extra_metrics={key: value for key, value in row.items() if key not in COLUMNS},
        normalizer=seen,
        **{name: row[name] for name in (*same, "steps_per_s", "idle_share")},
    )


def _genomes(values: Sequence[Mapping[str, Any]]) -> list[Genome]:
    """Decode genomes, each of which extends the first `same` mutations of the previous genome."""
    found, line = list[Genome](), list[Genome]()
    for value in values:
        base, chain = value["base"], value["chain"]
        root = Genome(Center.named(base) if isinstance(base, str) else base, value["network"])
        line = line[: value["same"] + 1] if value["same"] else [root]
        for left, (seed, scale, *spread) in zip(range(len(chain))[::-1], chain, strict=True):
            low_rank = LowRank(value["rank"]) if "rank" in value and not left else GAUSSIAN
            line.append(line[-1].child(seed, scale, Scaled(Center.named(spread[0])) if spread else low_rank))
        found.append(line[-1])
    return found


def _populations(file: Path) -> Iterator[tuple[EvaluatedPopulation, np.ndarray, np.ndarray | None]]:
    """Read the members of each generation. ValueError: they are damaged."""
    data, at = file.read_bytes(), 0
    known: list[list[Genome]] = []
    while at < len(data):
        *sizes, checksum = struct.unpack_from("<IIII", data, at)
        begin, columns, behaviors, end = (at + 16 + sum(sizes[:parts]) for parts in range(4))
        if zlib.crc32(data[begin:end]) != checksum:
            raise ValueError(f"generation {len(known)} of {file} is damaged")
        head, rest = json.loads(data[begin:columns]), zlib.decompress(data[columns:behaviors])
        if head["generation"] != len(known):
            raise ValueError(f"{file} has generation {head['generation']}, expected {len(known)}")
        count, values = head["members"], dict[str, np.ndarray]()
        for name, dtype, width in _COLUMNS[: None if head["novelty"] else -1]:
            values[name] = np.frombuffer(rest, dtype, count * width)
            rest = rest[values[name].nbytes :]
        ended = None
        if head["behaviors"]:
            ended = np.frombuffer(zlib.decompress(data[behaviors:end]), head["dtype"]).reshape(count, -1)
        known.append(_members(head, values, known))
        played = EvaluatedPopulation(known[-1], values["fitness"], int(values["steps"].sum()), ended)
        yield played, values["steps"], values.get("novelty")
        at = end


def _members(head: Mapping[str, Any], values: Mapping[str, np.ndarray], known: Sequence[list[Genome]]) -> list[Genome]:
    """Return the genomes of a generation's members, which extend genomes of earlier members or of roots."""
    roots, spreads = _genomes(head["roots"]), [Center.named(name) for name in head.get("spreads", ())]
    found = []
    columns = [values[name].tolist() for name in ("seeds", "scales", "kinds")]
    for (where, which), seed, scale, kind in zip(values["parents"].reshape(-1, 2).tolist(), *columns, strict=True):
        if where >= _OF_ROOT:
            parent = roots[which] if where == _OF_ROOT else known[where][which]
            found.append(parent.child(seed, scale, decode_kind(kind, spreads)))
        else:
            found.append(roots[which] if where == _IS_ROOT else Genome(seed))
    return found


def main() -> None:
    """Convert the folder given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a run's folder of the old format")
    parser.add_argument("into", type=Path, help="the new folder")
    options = parser.parse_args()
    convert(options.source, options.into)


if __name__ == "__main__":
    main()
