"""Report on the results of experiments/benchmarks/gpu/run.sh: writes report.md and scaling.png to the given folder.

    python3 experiments/benchmarks/gpu/report.py FOLDER [--results NAME] [--quiet]

Reads FOLDER/*.jsonl. Prints the page, which starts with the performance targets and whether they were reached.
--results also writes it to experiments/results/NAME.md. --quiet neither prints it nor draws the picture. Requires only
Python; the picture requires matplotlib.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
_BILLION_FRAMES_STEPS = 250e6
_TESTS_SHARE = 200 / 1300  # test episodes relative to the episodes that count as frames
_SKIPPED = 77
_CUT_OFF = (124, 137)  # by timeout, with TERM or KILL

Line = dict[str, Any]


class Figures:
    """Collection of all measured lines."""

    def __init__(self, folder: Path):
        self.lines: list[Line] = []
        for path in sorted(folder.glob("*.jsonl")):
            for text in path.read_text(encoding="utf-8").splitlines():
                try:
                    self.lines.append(json.loads(text))
                except json.JSONDecodeError:
                    print(f"{path.name}: not JSON, perhaps cut off: {text[:80]}", file=sys.stderr)

    def all(self, figure: str, **wanted: object) -> list[Line]:
        """Return the lines of a figure with these values, in order."""
        return [
            line
            for line in self.lines
            if line.get("figure") == figure and all(line.get(key) == value for key, value in wanted.items())
        ]

    def one(self, figure: str, **wanted: object) -> Line | None:
        """Return the last line of a figure with these values, or None."""
        found = self.all(figure, **wanted)
        return found[-1] if found else None


def wanted(figures: Figures) -> Iterable[tuple[str, str, str]]:
    """Yield each target, its measured value, and whether it was reached: "yes", "no" or "not measured"."""

    def check(what: str, found: float | None, limit: float, at_least: bool = True, unit: str = "") -> tuple:
        if found is None:
            return what, "", "not measured"
        reached = found >= limit if at_least else found <= limit
        return what, f"{found:.3g}{unit}", "yes" if reached else "no"

    def value(line: Line | None, key: str) -> float | None:
        return None if line is None else line[key]

    for k in (256, 1024):
        dense, forward = (figures.one(name, dtype="float32", k=k) for name in ("dense layer", "forward"))
        yield check(f"float32 dense layer, K = {k}: share of the copy bandwidth >= 0.80", value(dense, "share"), 0.8)
        yield check(f"float32 forward, K = {k}: share of the copy bandwidth >= 0.65", value(forward, "share"), 0.65)
        peers = figures.all("peer", k=k)
        best = min((line["queued_us"] for line in peers), default=None)
        faster = best / forward["queued_us"] if best and forward else None
        name = next((line["peer"] for line in peers if line["queued_us"] == best), "no peer")
        yield check(f"float32 forward, K = {k}: times as fast as the fastest peer ({name}) >= 1.5", faster, 1.5)
    for dtype in ("float32", "int8"):
        yield check(
            f"{dtype}: fixed part of a call <= 60 us",
            value(figures.one("affine", dtype=dtype), "fixed_us"),
            60,
            at_least=False,
            unit=" us",
        )
        yield check(
            f"{dtype}: spread over the number and order of rows <= 0.05",
            value(figures.one("independence", dtype=dtype), "spread"),
            0.05,
            at_least=False,
        )
    shared = value(figures.one("shared", dtype="float32"), "ratio")
    yield check("float32: dense layer of 256 episodes on one row against 256 rows >= 10 x", shared, 10)
    for k in (256, 1024):
        pair = [figures.one("forward", dtype=dtype, k=k) for dtype in ("float32", "int8")]
        ratio = pair[0]["queued_us"] / pair[1]["queued_us"] if all(pair) else None
        yield check(f"int8 forward, K = {k}: times as fast as float32 >= 3", ratio, 3)
    for dtype in ("float32", "int8"):
        runs = figures.all("scaling", dtype=dtype)
        most = max(runs, key=lambda line: line["threads"], default=None)
        threads = f", {most['threads']} threads" if most else ""
        yield check(f"{dtype} rollout{threads}: share of the emulators' rate >= 0.95", value(most, "ratio"), 0.95)


def table(head: list[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def page(figures: Figures) -> list[str]:
    """Return the report as lines of Markdown."""
    machine = figures.one("machine") or figures.one("pipeline_machine") or {"device": "no GPU"}
    carried = ROOT / "build" / "gpu_carry" / "commit"
    commit = _output("git", "describe", "--always", "--dirty")
    commit = commit or (carried.read_text(encoding="utf-8").strip() if carried.exists() else "unknown commit")
    now = datetime.now(UTC).isoformat(timespec="minutes")
    lines = [f"# {machine['device']}", "", f"{now}, {commit}, {_cpu()}. Measured by `make gpu-report`.", ""]
    steps = figures.all("step")
    if any(step.get("dry") for step in steps):
        lines += ["A dry run with the emulated device: the figures say nothing about a GPU.", ""]
    last = {step["step"]: step for step in steps}.values()  # a step that was repeated has replaced its figures
    lines += table(["step", "exit status", "s"], ([step["step"], status(step), step["seconds"]] for step in last))
    lines += ["## What is wanted", ""]
    lines += table(["wanted", "found", "reached"], wanted(figures))
    copy = figures.one("copy")
    if copy is not None:
        lines += ["## Calls", ""]
        lines += [
            f"Copying within the GPU: {copy['within_gb_s']:,.0f} GB/s, read and written; over the bus "
            f"{copy['in_gb_s']:.1f} GB/s in, {copy['out_gb_s']:.1f} GB/s out. GB/s and share: the weights of the rows "
            "played, each once. queued: one call behind the other; alone: on an idle GPU.",
            "",
        ]
        timed = [line for line in figures.lines if "queued_us" in line and "dtype" in line]
        lines += table(
            ["what", "dtype", "K", "rows", "queued us", "alone us", "GB/s", "share"],
            (
                [
                    *(line[key] for key in ("figure", "dtype", "k", "rows")),
                    *(f"{line[key]:,.1f}" for key in ("queued_us", "alone_us")),
                    f"{line['gb_s']:,.0f}",
                    f"{line['share']:.1%}",
                ]
                for line in timed
            ),
        )
        for line in figures.all("affine"):
            lines += [f"{line['dtype']}: {line['fixed_us']:.1f} us + K * {line['each_us']:.3f} us a call; at worst "]
            lines[-1] += f"{line['worst_error']:.0%} off."
        lines += [""]
        lines += table(
            ["from and to the host", "K", "us"],
            ([line["dtype"], line["k"], f"{line['us']:,.0f}"] for line in figures.all("from_host")),
        )
        lines += table(
            ["making weights, us a row", "init", "perturb", "one row alone", "a chain of 10"],
            (
                [line["dtype"], *(f"{line[f'{key}_us']:,.1f}" for key in ("init", "perturb", "perturb_one", "chain"))]
                for line in figures.all("making")
            ),
        )
    peers = figures.all("peer")
    if peers or figures.all("peer_skipped"):
        lines += ["## Peers, float32, TF32 off", ""]
        lines += table(
            ["peer", "version", "K", "us", "GB/s"],
            ([p["peer"], p["version"], p["k"], f"{p['queued_us']:,.0f}", f"{p['gb_s']:,.0f}"] for p in peers),
        )
        lines += [f"{line['peer']} was not measured: {line['reason']}" for line in figures.all("peer_skipped")]
        lines += [""]
    runs = figures.all("scaling")
    if runs:
        lines += ["## Rollouts", "", "LargeModel on Frostbite by the lane runner, a genome per slot, compared with"]
        lines[-1] += " emulators alone in the same run. Hours: for a GA's 1B frames, plus its tests."
        lines += [""]
        lines += table(
            ["what", "dtype", "threads", "lanes", "slots", "steps/s", "emulators", "ratio", "hours"],
            (
                [
                    *(line[key] for key in ("figure", "dtype", "threads", "lanes", "slots")),
                    *(f"{line[key]:,.0f}" for key in ("steps_per_s", "emulator_steps_per_s")),
                    f"{line['ratio']:.3f}",
                    f"{hours(line['steps_per_s']):.1f}",
                ]
                for line in [*runs, *figures.all("cores"), *figures.all("layout")]
            ),
        )
        lines += ["cores: the same networks on the processor, without the GPU.", ""]
    generations = figures.all("generation")
    if generations:
        lines += [
            "## Generations",
            "",
            "The second generation of frostbite_ga by `neuroevo train`, validation included.",
        ]
        lines += [""]
        lines += table(
            ["networks on", "dtype", "population", "steps/s", "threads idle", "same results as on the other"],
            (
                [
                    *(line[key] for key in ("device", "dtype", "population")),
                    f"{line['steps_per_s']:,.0f}",
                    f"{line['idle_share']:.1%}",
                    "yes" if line["same_results"] else "no",
                ]
                for line in generations
            ),
        )
    return lines


def status(step: Line) -> str:
    """Return the exit status of a step, and what it means where run.sh gave it a meaning."""
    if step["status"] == _SKIPPED:
        return f"skipped: {step['reason']}"
    return f"{step['status']} (cut off)" if step["status"] in _CUT_OFF else str(step["status"])


def hours(steps_per_s: float) -> float:
    """Return the hours of a GA's billion frames at this rate, including test episodes of the same length."""
    return _BILLION_FRAMES_STEPS * (1 + _TESTS_SHARE) / max(steps_per_s, 1e-9) / 3600


def plot(figures: Figures, path: Path) -> None:
    """Plot the scaling with threads, if matplotlib is installed."""
    runs = figures.all("scaling")
    if not runs:
        return
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no picture: matplotlib is not installed", file=sys.stderr)
        return
    figure, axes = pyplot.subplots(figsize=(6, 4.5))
    for dtype in ("float32", "int8"):
        own = sorted((line for line in runs if line["dtype"] == dtype), key=lambda line: line["threads"])
        axes.plot([r["threads"] for r in own], [r["steps_per_s"] for r in own], "o-", label=f"LargeModel, {dtype}")
    alone = sorted({r["threads"]: r["emulator_steps_per_s"] for r in runs}.items())
    axes.plot(*zip(*alone, strict=True), "k--", label="emulators alone")
    axes.set(xlabel="threads", ylabel="steps/s", xscale="log", yscale="log", title="Frostbite")
    axes.set_xticks([threads for threads, _ in alone], [str(threads) for threads, _ in alone])
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    models = [line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return f"{len(models)} cores of {models[0]}" if models else platform.processor()


def main() -> None:
    """Write the report of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", help="name of a file in experiments/results, without .md")
    parser.add_argument("--quiet", action="store_true", help="only write report.md and gpu_bench.json")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        parser.error(f"'{arguments.folder}' is not a folder")
    figures = Figures(arguments.folder)
    text = "\n".join(page(figures)).rstrip() + "\n"
    (arguments.folder / "report.md").write_text(text, encoding="utf-8")
    (arguments.folder / "gpu_bench.json").write_text(json.dumps(figures.lines, indent=1) + "\n", encoding="utf-8")
    if not arguments.quiet:
        print(text)
        plot(figures, arguments.folder / "scaling.png")
    if arguments.results:
        target = ROOT / "experiments" / "results" / f"{arguments.results}.md"
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
