"""Files outside docs/ that pages link to: they become pages and files of the site, so that every link stays within it.

A page may link to any file of the repository, as it must be written for a reader of the repository: a report in
experiments/results becomes a page of its own below results/, with its pictures and tables; CONTRIBUTING.md and
CHANGELOG.md become pages; a file of code becomes a page below files/ that shows it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = "experiments/results"
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
FILES = "files"

_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".toml": "toml", ".md": "markdown", ".txt": "text", ".h": "cpp", ".cc": "cpp"}


def results() -> dict[str, Path]:
    """Returns the reports of experiments/results, pictures and tables too: where each is in the site, and here."""
    return {f"results/{path.name}": path for path in sorted((ROOT / RESULTS).iterdir()) if path.is_file()}


def with_site_links(markdown: str, source: str) -> tuple[str, set[str]]:
    """Makes links to files outside docs/ links within the site.

    Args:
        markdown: A page.
        source: Where the page is in the repository, such as "docs/guides/gpu.md".

    Returns:
        The page, and the files of the repository that need a page below files/.
    """
    shown: set[str] = set()
    own = place_of(source)

    def moved(found: re.Match[str]) -> str:
        target, hash_, anchor = found[2].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path.startswith("..") or not (ROOT / path).is_file():
            return found[0]  # a page that is generated, or a mistake: MkDocs says which
        place = place_of(path)
        if place.startswith(f"{FILES}/"):
            shown.add(path)
        return f"{found[1]}{posixpath.relpath(place, posixpath.dirname(own) or '.')}{hash_}{anchor}{found[3]}"

    parts = _CODE.split(markdown)
    return "".join(part if _CODE.fullmatch(part) else _LINK.sub(moved, part) for part in parts), shown


def place_of(path: str) -> str:
    """Where a file of the repository is in the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith(f"{RESULTS}/"):
        return f"results/{posixpath.basename(path)}"
    return PAGES.get(path, f"{FILES}/{path}.md")


def page_of_file(path: str) -> str:
    """Returns the page that shows a file."""
    language = _LANGUAGES.get(posixpath.splitext(path)[1], "text")
    text = (ROOT / path).read_text(encoding="utf-8")
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 3)
    return f"# {posixpath.basename(path)}\n\nThe file `{path}` of the repository.\n\n{fence}{language}\n{text}{fence}\n"
