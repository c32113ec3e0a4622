"""The code that README.md and the pages of docs/ show: blocks between fences, and what is said about running them.

A line above a block says how it differs from one that is simply run:

    <!-- not run: REASON -->      such as what installs packages, needs several machines or takes minutes
    <!-- exits with N -->         a mistake on purpose

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
        page: Where it is, such as docs/start.md.
        line: Of its fence, from 1.
        language: What the fence says.
        title: The file that it is; None: none.
        text: What is between the fences.
        runs: Whether it is run.
        exit_code: What it ends with.
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
    """The blocks of a page. ValueError: one has no language, or a comment above it that says nothing that is known."""
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
    """A page's text without its blocks."""
    return _FENCE.sub("", path.read_text())
