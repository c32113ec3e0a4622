"""Vocabulary of prose: python tests/house/check_words.py [REPOSITORY] prints each use of a word of words.toml.

Prose is Markdown without its code, comments and strings of Python, and comments of C++, TOML, JavaScript and make.
Exits with 1 if there is any offense.
"""

import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

WORDS = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
OFFENSE = re.compile(rf"\b(?:{'|'.join(f'(?:{word})' for word in WORDS)})\b", re.IGNORECASE)
COMMENTS = {
    **dict.fromkeys((".cc", ".h", ".cu", ".cuh", ".inc", ".js"), r"(?<!:)//.*|/\*.*?\*/"),
    **dict.fromkeys((".toml", ".cmake", ".sh", ".sql", "Makefile"), r"(?:#|--) .*"),
}
NOT_OURS = ("LICENSE", "experiments/longruns/", "tests/house/words.toml", "tests/house/test_words.py")
PYTHON_PROSE = {"COMMENT", "STRING", "FSTRING_MIDDLE"}


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line, or part of a line, that is prose."""
    kind = path.suffix or path.name
    if kind not in {".py", ".md", *COMMENTS}:
        return
    text = path.read_text(encoding="utf-8")
    if kind == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if tokenize.tok_name[token.type] in PYTHON_PROSE:
                words = re.sub(r"\{[^{}\n]*\}", "", token.string)  # without the expressions of f-strings
                yield from enumerate(words.splitlines(), token.start[0])
    elif kind == ".md":
        blank = lambda match: re.sub(r"[^\n]", " ", match[0])  # noqa: E731 - keeps the numbers of lines
        yield from enumerate(re.sub(r"```.*?```|`[^`\n]*`", blank, text, flags=re.DOTALL).splitlines(), 1)
    else:
        for number, line in enumerate(text.splitlines(), 1):
            yield from ((number, comment[0]) for comment in re.finditer(COMMENTS[kind], line))


def offenses(root: Path) -> Iterator[str]:
    """Yield a message for each offense in the files that git tracks below `root`."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith(NOT_OURS) or not (root / name).is_file():
            continue
        for number, line in prose(root / name):
            for match in OFFENSE.finditer(line):
                better = next(term for word, term in WORDS.items() if re.fullmatch(word, match[0], re.IGNORECASE))
                yield f'{name}:{number}: "{match[0]}"; write {better}'


if __name__ == "__main__":
    found = list(offenses(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
