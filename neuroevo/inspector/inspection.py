"""Data for the page, by request names, which are also the paths of exported files.

overview                      the runs, their groups, and their progress
curves/COLUMN, alone/RUN      learning curves
about/RUN                     settings, provenance, warnings, log
cloud/RUN                     axes of the cloud, the maze, ranges of colors
generation/RUN/G              members of a generation
way/RUN                       mean and fittest point of each population, and the Pareto front of network costs
archive/RUN                   novelty search's archive of behaviors in the newest state
cells/RUN                     grid of behaviors, and current and former champions of its cells
family/RUN/G/INDEX            family tree of a member
ancestors/RUN/G               shares of later populations that descend from the members of a generation
sweep                         trials of sweeps
play/RUN/G/INDEX/EPISODE      playback of a member's episode
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.analysis.behavior_maps import algorithm_grid, behavior_map
from neuroevo.analysis.curves import drawn
from neuroevo.core.errors import UserError
from neuroevo.inspector import about, ancestry, learning
from neuroevo.inspector.inspected_run import InspectedRun
from neuroevo.inspector.payload import array
from neuroevo.inspector.playing import Member
from neuroevo.inspector.projection import Projection, project
from neuroevo.inspector.stage import Stage
from neuroevo.inspector.survey import Survey
from neuroevo.inspector.sweep_trials import SweepTrials, runs_of
from neuroevo.training.record import ARCHIVE

BEGINNING = 8
"""The cloud's axes are refitted with every generation up to this number; main.js has a copy of it."""


class Missing(UserError):
    """The requested name does not exist."""


class Inspection:
    """Collection of inspected runs; use it as a context manager, which stops playback.

    Attributes:
        runs: The runs.
        stage: Queue of members to play.
    """

    def __init__(self, paths: Sequence[Path], trust: bool = False):
        """Read the runs' configurations.

        Args:
            paths: Folders of runs or sweeps, or folders that contain runs.
            trust: Allow external code and models referenced by runs that you did not create.

        Raises:
            UserError: A folder contains no run.
        """
        self.runs: list[InspectedRun] = []
        self._sweeps: list[SweepTrials] = []
        seen = set()
        for path in paths:
            found, sweep = runs_of(path, trust)
            self._sweeps += [] if sweep is None else [sweep]
            for run in found:
                if run.path.resolve() not in seen:
                    seen.add(run.path.resolve())
                    self.runs.append(run)
        self._leave_out_namesakes()
        self.stage = Stage(self.runs)
        self._lock = threading.RLock()  # for everything but the stage, since file readers are not thread-safe
        self._projections: dict[int, tuple[int, Projection]] = {}  # with the number of generations at the fit
        self._surveys: dict[int, Survey] = {}

    def _leave_out_namesakes(self) -> None:
        """Disable playback of runs whose modules share a name with a different module of an earlier run."""
        known: dict[str, tuple[bytes, InspectedRun]] = {}
        for run in self.runs:
            for module, source in run.modules.items():
                first, owner = known.setdefault(module, (source, run))
                if source != first:
                    run.leave(f"its module {module} is not that of the run in {owner.path}: inspect it separately")

    def __enter__(self) -> Inspection:
        self.stage.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.stage.__exit__()

    def answer(self, name: str) -> dict[str, Any]:
        """Answer a request of the page.

        Args:
            name: Name of the data, see the module's docstring.

        Returns:
            JSON values.

        Raises:
            Missing: The name does not exist.
            UserError: The data is not available; the message contains the reason.
        """
        what, *rest = name.split("/")
        if what == "play" and len(rest) == 4:
            number, *member = (_number(each) for each in rest)
            self._run(number)
            return self.stage.state(number, Member(*member))
        with self._lock:
            if what == "curves" and len(rest) == 1:
                return learning.compare(self.runs, rest[0])
            of: dict[tuple[str, int], Callable[..., dict[str, Any]]] = {
                ("overview", 0): self._overview,
                ("sweep", 0): lambda: {"sweeps": [sweep.payload(self.runs) for sweep in self._sweeps]},
                ("alone", 1): lambda number: learning.progress(self._run(number)),
                ("about", 1): lambda number: about.about(self._run(number)),
                ("cloud", 1): self._cloud,
                ("generation", 2): self._generation,
                ("way", 1): self._way,
                ("archive", 1): self._archive,
                ("cells", 1): self._cells,
                ("family", 3): lambda number, *member: ancestry.family(self._survey(number), *member),
                ("ancestors", 2): lambda number, begin: ancestry.dominance(self._survey(number), begin),
            }
            handler = of.get((what, len(rest)))
            if handler is None:
                raise Missing(f"{name!r} is not a valid request")
            return handler(*(_number(each) for each in rest))

    def _run(self, number: int) -> InspectedRun:
        if not 0 <= number < len(self.runs):
            raise Missing(f"run {number} is out of range [0, {len(self.runs)})")
        return self.runs[number]

    def _overview(self) -> dict[str, Any]:
        found = []
        for run in self.runs:
            problem = ""
            try:
                run.refresh()
            except UserError as error:
                problem = str(error)
            config = run.config
            found.append(
                {
                    "name": run.name,
                    "path": str(run.path),
                    "title": "" if config is None else f"{config.algorithm_name} on {config.env.name}",
                    "seed": None if config is None else config.training.seed,
                    "rows": len(run.metrics.rows),
                    "generations": run.generations,
                    "goes_on": not problem and run.goes_on(),
                    "problem": problem or run.metrics.problem,
                    "why_not": run.why_not,
                    "episodes": 1 if config is None else config.training.episodes,
                }
            )
        return {
            "runs": found,
            "columns": learning.columns(self.runs),
            "column": learning.column_of(self.runs),
            "sweeps": len(self._sweeps),
        }

    def _projection(self, number: int) -> Projection:
        """Return the projection of a run, fitted once, or again with each of the first few generations."""
        run = self._run(number)
        fitted, projection = self._projections.get(number, (-1, None))
        if projection is None or fitted < min(run.generations, BEGINNING):
            projection = project(run)
            self._projections[number] = run.generations, projection
            self._surveys.pop(number, None)
        return projection

    def _survey(self, number: int) -> Survey:
        projection = self._projection(number)
        if number not in self._surveys:
            self._surveys[number] = Survey(self._run(number), projection)
        self._surveys[number].refresh()
        return self._surveys[number]

    def _cloud(self, number: int) -> dict[str, Any]:
        run, projection = self._run(number), self._projection(number)
        walls = None if run.config is None or projection.kind != "position" else run.config.environment.walls
        low = drawn(np.array([row["fitness_min"] for row in run.metrics.rows] or [0.0], np.float64))
        high = drawn(np.array([row["fitness_max"] for row in run.metrics.rows] or [1.0], np.float64))
        plane = run.config is not None and projection.kind in ("position", "measures")
        elites = run.config is not None and algorithm_grid(run.config) is not None
        return {
            "kind": projection.kind,
            "titles": list(projection.titles),
            "low": [float(each) for each in projection.low],
            "high": [float(each) for each in projection.high],
            "maze": walls,
            "fitness": [float(np.quantile(low, 0.25)), float(high.max())],
            "kept": run.kept,
            "cells": plane,
            "archive": plane and not elites and any(ARCHIVE in row for row in run.metrics.rows[-1:]),
        }

    def _generation(self, number: int, generation: int) -> dict[str, Any]:
        run, projection = self._run(number), self._projection(number)
        members = run.read(generation)
        if members is None:
            fitness = run.metrics.fitness[generation]
            places = np.arange(len(fitness)) if projection.kind == "index" else np.full(len(fitness), np.nan)
            points = np.stack([places, drawn(fitness)], axis=1)
            return {"generation": generation, "size": len(fitness), "x": array(points[:, 0]), "y": array(points[:, 1]),
                    "fitness": array(fitness)}  # fmt: skip
        points = projection.points(members)
        novelty = {} if members.novelty is None else {"novelty": array(members.novelty.astype(np.float32))}
        return {
            "generation": generation,
            "size": len(members),
            "x": array(points[:, 0]),
            "y": array(points[:, 1]),
            "fitness": array(members.fitness),
            "steps": array(members.steps.astype(np.int32)),
            "parents": array(members.parents.astype(np.int32)),
            "center": bool(members.centers),
            "elite": list(run.members.elite(generation) or ()) or None,
            **novelty,
        }

    def _way(self, number: int) -> dict[str, Any]:
        survey = self._survey(number)
        way = {name: np.array(getattr(survey, name), np.float64).reshape(-1, 2) for name in ("mean", "best")}
        if survey.projection.kind == "cost":
            generations, way["front"] = survey.front()
        answer: dict[str, Any] = {name: {"x": array(each[:, 0]), "y": array(each[:, 1])} for name, each in way.items()}
        if "front" in answer:
            answer["front"]["generations"] = array(generations)
        return answer

    def _archive(self, number: int) -> dict[str, Any]:
        run = self._run(number)
        if run.reader is None:
            raise UserError(run.why_not)
        archive = run.reader.config.algorithm.archive(run.reader.state().algorithm)
        if archive is None or archive.behaviors is None or archive.fitness is not None:
            raise UserError(f"the run in {run.path} has no archive of behaviors without fitness")
        ends = archive.behaviors[:, -2:].astype(np.float32)
        sizes = [int(row.get(ARCHIVE) or 0) for row in run.metrics.rows]
        return {"x": array(ends[:, 0]), "y": array(ends[:, 1]), "sizes": array(np.array(sizes, np.int32))}

    def _cells(self, number: int) -> dict[str, Any]:
        run = self._run(number)
        if run.reader is None:
            raise UserError(run.why_not)
        found = behavior_map(run.reader)
        novelty = {} if np.isnan(found.novelty).all() else {"novelty": array(found.novelty.astype(np.float32))}
        return {
            "low": list(found.grid.low),
            "high": list(found.grid.high),
            "shape": list(found.grid.shape),
            "generation": array(found.members[:, 0].astype(np.int32)),
            "index": array(found.members[:, 1].astype(np.int32)),
            "cell": array(found.cells.astype(np.int32)),
            "fitness": array(found.scores),
            **novelty,
        }


def _number(text: str) -> int:
    """Parse a number in a request's name. Missing: it is not a number."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Missing(f"{text!r} is not a valid number of a run, generation, member or episode")
    return int(text)
