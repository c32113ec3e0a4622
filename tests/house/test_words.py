"""The vocabulary check finds each listed word in prose, and nothing in code."""

import subprocess
import sys
from pathlib import Path

HOUSE = Path(__file__).parent
FILES = {
    "page.md": "The run goes on.\n`nobody` is code\n```\nanew\n```\nNobody reads it.\n",
    "module.py": '"""Module."""\nbeside = 1  # told\nprint(f"{beside} is none")\n',
    "kernel.cc": 'const char* beside = "anew";  // beside it\n',
    "Makefile": "run:  ## Be it so\n\techo anew\n",
    "image.bin": "anew\n",
}


def check(root: Path) -> tuple[int, list[str]]:
    run = subprocess.run([sys.executable, HOUSE / "check_words.py", root], capture_output=True, text=True)
    assert run.stderr == ""
    return run.returncode, sorted(line.split(";")[0] for line in run.stdout.splitlines())


def test_offenses_in_prose_are_found(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert check(tmp_path) == (0, [])  # git tracks no file yet
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    assert check(tmp_path) == (
        1,
        [
            'Makefile:1: "Be it"',
            'kernel.cc:1: "beside"',
            'module.py:2: "told"',
            'module.py:3: "is none"',
            'page.md:1: "goes on"',
            'page.md:6: "Nobody"',
        ],
    )
