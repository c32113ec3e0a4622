"""Check of a portable build's instruction sets: python tests/house/check_instructions.py NEUROEVO/_LIB

Libraries for every processor must have none that AVX brought, and those of a level with AVX2 none that AVX-512 brought;
by objdump, which comes with the compiler. Prints the first of each library that has one, and exits with 1.
"""

import re
import subprocess
import sys
from pathlib import Path

# The first byte of an instruction, behind the few prefixes that it may have: VEX (AVX, AVX2, FMA, BMI), EVEX (AVX-512).
PREFIXES = {"26", "2e", "36", "3e", "64", "65", "67"}
VEX, EVEX = {"c4", "c5"}, {"62"}
INSTRUCTION = re.compile(r"^ +[0-9a-f]+:\t((?:[0-9a-f]{2} )+)")


def first(library: Path, forbidden: set[str]) -> str:
    """Return the first instruction of a library that starts with one of these bytes, "" without a match."""
    command = ["objdump", "--disassemble", "--wide", library]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        function = ""
        for line in process.stdout:
            if line.endswith(">:\n"):
                function = line.split("<")[1][:-3]
            elif (found := INSTRUCTION.match(line)) and line.count("\t") > 1:
                code = found[1].split()
                while code[0] in PREFIXES and len(code) > 1:
                    code = code[1:]
                if code[0] in forbidden:
                    process.kill()
                    return f"{function}: {line.strip()}"
    if process.returncode != 0:
        sys.exit(f"objdump failed for {library}")
    return ""


def main() -> None:
    folder, wrong, checked = Path(sys.argv[1]), 0, 0
    for library in sorted(folder.glob("**/*.so")):
        level = "" if library.parent == folder else library.parent.name
        forbidden = EVEX if level.startswith("x86-64-v3") else set() if level else VEX | EVEX
        checked += 1
        if forbidden and (found := first(library, forbidden)):
            print(f"{library}: an instruction of newer processors, in {found}")
            wrong += 1
    if checked == 0:
        sys.exit(f"there is no library in {folder}")
    print(f"{checked} libraries, {wrong} of which have instructions that they should not have")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
