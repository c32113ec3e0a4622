"""Code blocks of README.md and the pages of docs/, with marks that control how tests run them.

A comment above a block changes how it is run:

    <!-- not run: REASON -->      such as what installs packages, needs several machines or takes minutes
    <!-- exits with N -->         an intended failure

A block whose fence has a title, ```toml title="mine.toml"```, is a file of that name for the blocks after it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = ("sh", "python", "toml")  # what is tried
SHOWN = ("json", "text", "math", "sql")  # what is not code, and queries, which tests/house/test_database_page.py runs

_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^>]*) -->\n)?^```(?P<info>[^`\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_INFO = re.compile(r'(?P<language>\w+)(?: title="(?P<title>[^"]+)")?')
_NOT_RUN, _EXITS = re.compile(r"not run: \S.*"), re.compile(r"exits with (\d+)")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        page: Path of the page, such as docs/start.md.
        line: Line of its fence, from 1.
        language: Language of the fence.
        title: Name of the file that it defines, or None.
        text: Text between the fences.
        runs: Whether it is run.
        exit_code: Expected exit code.
    """

    page: str
    line: int
    language: str
    title: str | None
    text: str
    runs: bool
    exit_code: int = 0

    @property
    def where(self):
        """The block's place, for messages."""
        return f"{self.page}:{self.line}"


def blocks_of(path):
    """Return the blocks of a page. Raise ValueError if one has no language or an unknown comment above it."""
    text, page = path.read_text(), str(path.relative_to(ROOT))
    found = []
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        info, mark = _INFO.fullmatch(match["info"]), match["mark"] or ""
        exits = _EXITS.fullmatch(mark)
        if info is None or info["language"] not in (*RUN, *SHOWN):
            raise ValueError(f"{page}:{line}: ```{match['info']}: expected one of {', '.join((*RUN, *SHOWN))}")
        if mark and not exits and not _NOT_RUN.fullmatch(mark) and not mark.startswith("generated: "):
            raise ValueError(f"{page}:{line}: <!-- {mark} -->: expected 'not run: REASON' or 'exits with N'")
        runs = info["language"] in RUN and not mark.startswith("not run")
        code = int(exits[1]) if exits else 0
        found.append(Block(page, line, info["language"], info["title"], match["text"], runs, code))
    return found


def without_blocks(path):
    """Return a page's text without its blocks."""
    return _FENCE.sub("", path.read_text())
