"""Export of the page as files that a browser shows without a server, for example as a paper's supplement.

index.html, style.css, *.js       the server's page
data/NAME.js                      the server's data, as function calls, since a page opened from files cannot fetch data
videos/*.mp4                      videos of the selected members
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.core.errors import UserError, cannot_write
from neuroevo.inspector.inspection import Inspection
from neuroevo.inspector.payload import text
from neuroevo.inspector.playing import Member
from neuroevo.inspector.plotly import plotly_script
from neuroevo.inspector.server import PAGE, PLOTLY

_PLAYED = 6  # generations whose fittest member is played by default
_ANCESTORS = 12  # generations whose descendants can be shown


def parse_member(text: str) -> Member:
    """Parse a value of the option --member.

    Args:
        text: GENERATION:INDEX.

    Raises:
        UserError: The text is malformed.
    """
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", text, re.ASCII)
    if match is None:
        raise UserError(f"--member {text}: expected GENERATION:INDEX, such as 12:345")
    return Member(int(match[1]), int(match[2]), 0)


def export(
    inspection: Inspection, out: Path, members: Sequence[Member] = (), say: Callable[[str], None] = lambda line: None
) -> int:
    """Write the page into a folder.

    Args:
        inspection: The inspected runs.
        out: The folder, which must not exist or be empty.
        members: Members of the first run to play; if empty, the fittest members of some generations of each run.
        say: Called with a description of each member before it is played.

    Returns:
        The number of videos.

    Raises:
        UserError: The folder is not empty or not writable, or a selected member cannot be played.
        DiskError: The disk is full or broken.
    """
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UserError(f"--export {out}: already exists, expected a new or empty folder")
        writer = _Writer(inspection, out)
        return writer.write(members, say)
    except OSError as error:
        raise cannot_write(f"the page into {out}", error) from error


class _Writer:
    def __init__(self, inspection: Inspection, out: Path):
        self._inspection, self._out = inspection, out

    def write(self, members: Sequence[Member], say: Callable[[str], None]) -> int:
        for name in ("data", "videos"):
            (self._out / name).mkdir(parents=True, exist_ok=True)
        for path in PAGE.iterdir():
            shutil.copyfile(path, self._out / path.name)
        page = (PAGE / "index.html").read_text(encoding="utf-8").replace("<html ", "<html data-exported ", 1)
        (self._out / "index.html").write_text(page, encoding="utf-8")
        shutil.copyfile(plotly_script(), self._out / PLOTLY)
        overview = self._inspection.answer("overview")
        videos, ancestors = 0, {}
        played: dict[int, list[list[int]]] = {}
        families: dict[int, list[list[int]]] = {}
        for number, run in enumerate(overview["runs"]):
            self._try(*(f"{what}/{number}" for what in ("alone", "about", "cloud", "way", "archive", "cells")))
            generations = run["generations"]
            self._try(*(f"generation/{number}/{generation}" for generation in range(generations)))
            chosen = members if members else self._fittest(number, generations)
            chosen = chosen if number == 0 or not members else []
            played[number], families[number] = [], []
            for member in chosen:
                say(f"{run['name']}: member {member.index} of generation {member.generation}")
                if self._play(number, member, strict=bool(members)):
                    played[number].append([member.generation, member.index])
                    videos += 1
                name = f"{number}/{member.generation}/{member.index}"
                families[number] += [[member.generation, member.index]] if self._try(f"family/{name}") else []
            starts = [int(each) for each in np.unique(np.linspace(0, max(generations - 1, 0), _ANCESTORS).astype(int))]
            ancestors[number] = [begin for begin in starts if self._try(f"ancestors/{number}/{begin}")]
        self._try("sweep", *(f"curves/{column}" for column in overview["columns"]))
        chosen_of = {"played": played, "ancestors": ancestors, "families": families}
        self._put("overview", {**overview, "exported": chosen_of})
        return videos

    def _fittest(self, number: int, generations: int) -> list[Member]:
        fitness = self._inspection.runs[number].metrics.fitness
        count = min(generations, len(fitness))
        chosen = np.unique(np.linspace(0, count - 1, _PLAYED).astype(int)).tolist() if count else []
        return [Member(generation, int(fitness[generation].argmax()), 0) for generation in chosen]

    def _play(self, number: int, member: Member, strict: bool) -> bool:
        """Play a member; return whether it succeeded. UserError: it failed and `strict` is True."""
        played = self._inspection.stage.play(number, member)
        if played["state"] != "done":
            if strict:
                raise UserError(f"--member {member.generation}:{member.index}: {played['error']}")
            return False
        if "file" in played:
            video = self._inspection.stage.video(played["file"])
            assert video is not None  # play() made it
            shutil.copyfile(video, self._out / "videos" / played["file"])
        self._put(f"play/{number}/{member.generation}/{member.index}/{member.episode}", played)
        return True

    def _try(self, *names: str) -> bool:
        """Write the page's data, or an error in its place. Return whether there was no error."""
        whole = True
        for name in names:
            try:
                self._put(name, self._inspection.answer(name))
            except UserError as error:
                self._put(name, {"error": str(error)})
                whole = False
        return whole

    def _put(self, name: str, value: dict[str, Any]) -> None:
        path = self._out / "data" / f"{name}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"inspector.put(" + text(name) + b"," + text(value) + b");\n")
