"""Run fuzz targets: python -m tests.fuzz.run [--seconds N] [--jobs N] [--seed S] [TARGET...]; `make fuzz` calls it.

Compiles those in C++ with clang's libFuzzer into build/fuzz/native, runs each target for that time, and prints a table.
The corpus of a target is kept in build/fuzz/corpus for the next run; an input that makes it fail is stored in
build/fuzz/crashes and printed with the command that reproduces it; its output is in build/fuzz/logs. Exits
with 1 if a target failed, and with 2 if nothing could be run.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.targets import BUILD, HERE, NATIVE, ROOT, TARGETS, Target

# An input that takes longer, or has more memory in all or at once, is a failure.
LIMITS = ("-timeout=60", "-rss_limit_mb=2048", "-malloc_limit_mb=512")
GRACE = 300  # seconds beyond its time after which a target hangs
SANITIZERS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:allocator_may_return_null=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
NO_CLANG = """make fuzz: {why}.
It takes clang with libFuzzer: on Debian 12, apt-get install -y clang libclang-rt-14-dev; elsewhere clang and, where
that is a package of its own, its compiler-rt. FUZZ_CXX=... names another compiler."""


@dataclass(frozen=True)
class Outcome:
    """Result of a target's run."""

    name: str
    executions: str
    speed: str  # executions per second
    edges: str  # of the control flow that were reached
    inputs: int  # in its corpus
    failure: str  # "" if there was none
    crashes: tuple[Path, ...]  # inputs that made it fail


def compiler() -> str:
    """Return a clang++ that links libFuzzer, or exit if none is installed."""
    names = [f"clang++-{version}" for version in range(24, 10, -1)]
    wanted = os.environ.get("FUZZ_CXX") or next(filter(shutil.which, ["clang++", *names]), None)
    if wanted is None:
        print(NO_CLANG.format(why="there is no clang++"), file=sys.stderr)
        raise SystemExit(2)
    source = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    with tempfile.TemporaryDirectory() as folder:
        flags = f"-x c++ - -fsanitize=fuzzer,address,undefined -o {shlex.quote(folder)}/probe"
        command = shlex.split(f"{wanted} {flags}")
        try:
            tried = subprocess.run(command, input=source, capture_output=True, text=True)
            why = tried.stderr.strip().splitlines()[0] if tried.returncode != 0 else ""
        except OSError as error:
            why = str(error)
    if why:
        print(NO_CLANG.format(why=f"'{wanted}' cannot build a fuzz target ({why})"), file=sys.stderr)
        raise SystemExit(2)
    return wanted


def build(targets: list[Target], jobs: int) -> None:
    """Compile the C++ targets."""
    cmake = Path(sys.executable).parent / "cmake"
    configure = [cmake, "-S", ROOT / "custom_ops", "-B", NATIVE, "-G", "Ninja"]
    configure += [f"-DCMAKE_MAKE_PROGRAM={cmake.with_name('ninja')}", f"-DNEUROEVO_PYTHON={sys.executable}"]
    configure += ["-DNEUROEVO_SANITIZE=address,undefined", "-DNEUROEVO_FUZZ=ON"]
    configure += [f"-DNEUROEVO_{part}=OFF" for part in ("ATARI", "CUDA", "TF", "PGO")]
    environment = {**os.environ, "CXX": compiler()}
    for command in (
        configure,
        [cmake, "--build", NATIVE, "--parallel", str(jobs), "--target", *(target.name for target in targets)],
    ):
        made = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if made.returncode != 0:
            print(made.stdout + "make fuzz: the targets could not be compiled (see above)", file=sys.stderr)
            raise SystemExit(2)


def beginning(target: Target) -> Path:
    """Return the folder of the target's initial inputs from the repository, with .hex files decoded."""
    folder = BUILD / "inputs" / target.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in sorted((HERE / "inputs" / target.name).glob("*")):
        content = path.read_bytes()
        if path.suffix == ".hex":
            content = bytes.fromhex(re.sub(r"#.*", "", content.decode()))
        (folder / path.name).write_bytes(content)
    return folder


def run(target: Target, seconds: int, seed: int) -> Outcome:
    """Run one target for a time; seed is libFuzzer's, 0 for a different one in each run."""
    corpus, crashes, log = (BUILD / kind / target.name for kind in ("corpus", "crashes", "logs"))
    log = log.with_suffix(".log")
    for folder in (corpus, crashes, log.parent):
        folder.mkdir(parents=True, exist_ok=True)
    known = set(crashes.iterdir())
    command = [*target.command, f"-max_total_time={seconds}", f"-seed={seed}", "-print_final_stats=1", *LIMITS]
    command += [f"-max_len={target.max_length}", f"-artifact_prefix={crashes}/", *target.options]
    dictionary = HERE / "dictionaries" / f"{target.name}.dict"
    if dictionary.is_file():
        command.append(f"-dict={dictionary}")
    command += [str(corpus), str(beginning(target))]
    failure = ""
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # targets write files, and libFuzzer just exits
    with log.open("wb") as output, tempfile.TemporaryDirectory(prefix="neuroevo_fuzz_", dir=in_memory) as temporary:
        output.write(shlex.join(command).encode() + b"\n")
        output.flush()
        try:
            ended = subprocess.run(
                command, cwd=ROOT, env={**SANITIZERS, **os.environ, "TMPDIR": temporary}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, timeout=seconds + GRACE,
            )  # fmt: skip
            if ended.returncode != 0:
                failure = f"exit code {ended.returncode}"
        except subprocess.TimeoutExpired:
            failure = f"no end {GRACE} s after its time"
    said = log.read_text(errors="replace")
    if failure and (found := re.search(r"(?:ERROR|SUMMARY|runtime error): *(.*)|Uncaught Python exception", said)):
        failure += f": {found[0]}"
    return Outcome(
        target.name,
        last(r"stat::number_of_executed_units: *(\d+)", said),
        last(r"stat::average_exec_per_sec: *(\d+)", said),
        last(r"\bcov: (\d+)", said),
        len(list(corpus.iterdir())),
        failure,
        tuple(sorted(set(crashes.iterdir()) - known)),
    )


def last(pattern: str, text: str) -> str:
    """Return the pattern's group in its last match, "-" without a match."""
    return ([*re.findall(pattern, text)] or ["-"])[-1]


def report(outcomes: list[Outcome]) -> None:
    """Print the table, followed by the failures."""
    row = "{:16} {:>12} {:>8} {:>7} {:>7}  {}"
    print(row.format("target", "executions", "exec/s", "edges", "corpus", "result"))
    for each in outcomes:
        result = "FAILED" if each.failure else "ok"
        print(row.format(each.name, each.executions, each.speed, each.edges, each.inputs, result))
    commands = {target.name: target.command for target in TARGETS}
    for each in outcomes:
        if not each.failure:
            continue
        print(f"\n{each.name} failed: {each.failure}; its log is {BUILD / 'logs' / each.name}.log")
        for crash in each.crashes:
            content = crash.read_bytes()
            print(f"  {len(content)} bytes: {content[:200]!r}{' ...' if len(content) > 200 else ''}")
            print(f"  again: {shlex.join([*commands[each.name], str(crash)])}")


def main() -> int:
    """Build and run the targets given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="targets at a time")
    parser.add_argument("--seed", type=int, default=0, help="of what inputs are made by; 0: another one in every run")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="of " + ", ".join(each.name for each in TARGETS))
    given = parser.parse_args()
    known = {target.name: target for target in TARGETS}
    for name in given.targets:
        if name not in known:
            parser.error(f"there is no target '{name}', expected some of {', '.join(known)}")
    if given.seconds < 1 or given.jobs < 1:
        parser.error(f"--seconds is {given.seconds} and --jobs {given.jobs}, expected 1 or more")
    targets = [known[name] for name in given.targets] or list(TARGETS)
    for target in [target for target in targets if target.needs and find_spec(target.needs) is None]:
        targets.remove(target)
        print(f"{target.name} is skipped: it takes {target.needs}, which {sys.executable} does not have")
    if compiled := [target for target in targets if target.native]:
        build(compiled, given.jobs)
    print(f"{len(targets)} targets for {given.seconds} s each, {given.jobs} at a time", flush=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        outcomes = list(pool.map(lambda target: run(target, given.seconds, given.seed), targets))
    report(outcomes)
    return 1 if any(each.failure for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
