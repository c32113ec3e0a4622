"""Include rules of C++: python tests/house/check_includes.py [REPOSITORY] prints violations of the rules below.

Quoted includes are resolved in custom_ops/. A folder's rule applies to its own files; subfolders have separate rules.
Exits with 1 if there are violations.
"""

import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

# Folder -> the folders that its files may include in addition to their own; both may be fnmatch patterns. The first
# match applies.
MAY_INCLUDE = {
    "core": "",
    # An interface of the GPU and of its emulation on the CPU, which are independent; core/ depends on neither.
    "gpu": "core gpu/nvcc gpu/emulated",
    "gpu/nvcc": "core gpu",
    "gpu/emulated": "core gpu",
    # Families of environments are independent, and shared code depends on no family.
    "envs": "core gpu",
    "envs/atari": "core gpu envs envs/atari/console",
    "envs/atari/console": "core",
    "envs/*": "core gpu envs",
    "networks": "core gpu",
    "networks/int8": "core gpu networks",
    # The same holds for backends and their shared code; within a backend, float32 and int8 are independent, too.
    "population": "core gpu networks* population/int8",
    "population/int8": "core gpu networks* population",
    "population/reference": "core gpu networks* population population/int8",
    "population/cpu": "core gpu networks* population population/int8 population/cpu/*",
    "population/cpu/float32": "core gpu networks population population/cpu",
    "population/cpu/int8": "core gpu networks* population population/int8 population/cpu",
    "population/cuda": "core gpu networks* population population/int8 population/cuda/*",
    "population/cuda/float32": "core gpu networks population population/cuda",
    "population/cuda/int8": "core gpu networks* population population/int8 population/cuda",
    "rollout": "core gpu envs networks* population",
    # Two interfaces to the same code. One part of c_api/ belongs to the GPU's library and includes its backend.
    "c_api": "core gpu envs networks* population population/cuda rollout",
    "tf": "core gpu envs networks* population rollout",
    "cmake": "envs/atari/console",  # the program that profiles the emulator
}
TENSORFLOW = ("tensorflow/", "xla/", "tsl/")  # where its headers are
TENSORFLOW_ONLY_IN = "tf"
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def includes(path):
    """Yield (line number, whether it is quoted, name) of a file's includes."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1] == '"', match[2]


def cycles(edges):
    """Return cyclic includes of folders, each cycle once. edges: folder -> folders that it includes."""
    found, done = [], set()

    def visit(folder, way):
        if folder in way:
            found.append([*way[way.index(folder) :], folder])
        elif folder not in done:
            for other in sorted(edges.get(folder, ())):
                visit(other, [*way, folder])
            done.add(folder)

    for folder in sorted(edges):
        visit(folder, [])
    return found


def violations(root):
    """Return the violations in root/custom_ops, a line each."""
    ops = root / "custom_ops"
    found, edges = [], {}
    files = sorted(path for path in ops.rglob("*") if path.suffix in (".h", ".cc", ".cu"))
    if not files:
        return [f"{ops} has no .h, .cc or .cu files"]
    for path in files:
        folder = path.parent.relative_to(ops).as_posix()
        allowed = next((rule for name, rule in MAY_INCLUDE.items() if fnmatchcase(folder, name)), None)
        if allowed is None:
            found.append(f"{path.relative_to(root)}: custom_ops/{folder} has no rule in {Path(__file__).name}")
            continue
        for number, quoted, name in includes(path):
            where = f"{path.relative_to(root)}:{number}"
            if name.startswith(TENSORFLOW):
                if folder != TENSORFLOW_ONLY_IN:
                    found.append(f"{where}: custom_ops/{folder} may not include TensorFlow ({name})")
            elif quoted and not (ops / name).is_file():
                found.append(f"{where}: there is no custom_ops/{name}")
            elif quoted or (ops / name).is_file():
                other = Path(name).parent.as_posix()
                if other == folder:
                    continue
                if not any(fnmatchcase(other, rule) for rule in allowed.split()):
                    found.append(f"{where}: custom_ops/{folder} may not include custom_ops/{other} ({name})")
                if not other.startswith(folder + "/"):  # a folder may stand before what is inside it
                    edges.setdefault(folder, set()).add(other)
    found += [f"folders include each other in a circle: {' -> '.join(circle)}" for circle in cycles(edges)]
    return found


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2]
    found = violations(root)
    print("\n".join(found) if found else "Includes in custom_ops/ follow the rules.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
