"""The report of `make gpu-report` on made-up results, and the steps of run.sh that need neither a GPU nor a build."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GPU = Path(__file__).parents[2] / "experiments/benchmarks/gpu"
TIMES = {"rows": 1024, "queued_us": 100.0, "alone_us": 120.0, "gb_s": 2500.0}


def step(name, status=0, **more):
    return {"figure": "step", "step": name, "status": status, "seconds": 7, **more}


def forward(dtype, k, queued_us, share=0.8):
    return {"figure": "forward", "dtype": dtype, "k": k, **TIMES, "queued_us": queued_us, "share": share}


def bench():
    yield {"figure": "machine", "device": "Some GPU", "memory_gb": 80}
    yield {"figure": "copy", "within_gb_s": 3000, "in_gb_s": 55.0, "out_gb_s": 54.0}
    for dtype in ("float32", "int8"):
        for k in (256, 1024):
            yield forward(dtype, k, queued_us={"float32": 4.0, "int8": 1.0}[dtype] * k)
            yield {"figure": "dense layer", "dtype": dtype, "k": k, **TIMES, "share": 0.95 if k == 256 else 0.75}
        yield {"figure": "affine", "dtype": dtype, "fixed_us": 55.0, "each_us": 6.0, "worst_error": 0.1}
        yield {"figure": "independence", "dtype": dtype, "k": 256, "spread": 0.01}
        yield {"figure": "shared", "dtype": dtype, "k": 256, "ratio": 16.0}
        yield {"figure": "from_host", "dtype": dtype, "k": 1, "us": 108.0}
        made = {"init_us": 35.0, "perturb_us": 15.0, "perturb_one_us": 33.0, "chain_us": 95.0}
        yield {"figure": "making", "dtype": dtype, "rows": 64, **made}


def pipeline():
    for dtype, ratio in (("float32", 0.9), ("int8", 1.0)):
        for figure, threads, lanes in (("layout", 16, 1), ("layout", 16, 3), ("cores", 16, 16), ("scaling", 16, 3)):
            layout = {"figure": figure, "dtype": dtype, "threads": threads, "lanes": lanes, "slots": 64}
            yield {**layout, "steps_per_s": 40000.0, "emulator_steps_per_s": 50000.0, "ratio": ratio}


def train():
    for device in ("gpu", "cpu"):
        rates = {"population": 400, "steps_per_s": 49588.0, "idle_share": 0.219, "same_results": device == "gpu"}
        yield {"figure": "generation", "device": device, "dtype": "float32", **rates}


def peers():
    yield {"figure": "peer", "peer": "jax_vmap", "version": "jax 1", "k": 256, "queued_us": 2048.0, "gb_s": 540.0}
    yield {"figure": "peer_skipped", "peer": "torch_vmap", "reason": "there is no torch"}


def write(folder, **files):
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def report(folder, *arguments):
    command = [sys.executable, str(GPU / "report.py"), str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(folder):
    page = (folder / "report.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page if line.startswith("| ")]


def test_complete_results_fill_every_table(tmp_path):
    steps = [step(name) for name in ("build", "test", "pipeline", "train", "bench", "sanitize", "peers")]
    write(tmp_path, steps=steps, bench=bench(), pipeline=pipeline(), train=train(), peers=peers())
    found = report(tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("# Some GPU\n")
    assert "A dry run" not in found.stdout
    assert "torch_vmap was not measured: there is no torch" in found.stdout
    table = rows(tmp_path)
    assert table[1:8] == [[line["step"], "0", "7"] for line in steps]
    for row in (
        ["float32 dense layer, K = 256: share of the copy bandwidth >= 0.80", "0.95", "yes"],
        ["float32 dense layer, K = 1024: share of the copy bandwidth >= 0.80", "0.75", "no"],
        ["float32 forward, K = 256: times as fast as the fastest peer (jax_vmap) >= 1.5", "2", "yes"],
        ["float32 forward, K = 1024: times as fast as the fastest peer (no peer) >= 1.5", "", "not measured"],
        ["float32: fixed part of a call <= 60 us", "55 us", "yes"],
        ["int8 forward, K = 256: times as fast as float32 >= 3", "4", "yes"],
        ["float32 rollout, 16 threads: share of the emulators' rate >= 0.95", "0.9", "no"],
        ["int8 rollout, 16 threads: share of the emulators' rate >= 0.95", "1", "yes"],
        ["forward", "float32", "256", "1024", "1,024.0", "120.0", "2,500", "80.0%"],
        ["layout", "float32", "16", "1", "64", "40,000", "50,000", "0.900", "2.0"],
        ["jax_vmap", "jax 1", "256", "2,048", "540"],
        ["gpu", "float32", "400", "49,588", "21.9%", "yes"],
        ["cpu", "float32", "400", "49,588", "21.9%", "no"],
    ):
        assert table.count(row) == 1, row


def test_partial_results_are_reported_as_not_measured(tmp_path):
    write(tmp_path, steps=[step("build")])
    assert report(tmp_path).returncode == 0
    table = rows(tmp_path)
    assert table[:2] == [["step", "exit status", "s"], ["build", "0", "7"]]
    assert {row[-1] for row in table[3:]} == {"not measured"}  # after the head


def test_steps_that_failed_were_cut_off_or_skipped_have_a_row(tmp_path):
    steps = [step("test", 1), step("pipeline", 124), step("bench", 137), step("peers", 77, reason="no GPU", dry=True)]
    write(tmp_path, steps=steps)
    found = report(tmp_path)
    assert found.returncode == 0  # the steps' exit statuses are those of run.sh
    assert "A dry run" in found.stdout
    assert rows(tmp_path)[1:5] == [
        ["test", "1", "7"],
        ["pipeline", "124 (cut off)", "7"],
        ["bench", "137 (cut off)", "7"],
        ["peers", "skipped: no GPU", "7"],
    ]


def test_the_last_run_of_a_step_counts(tmp_path):
    write(tmp_path, steps=[step("test", 1), step("bench"), step("test")])
    report(tmp_path)
    assert rows(tmp_path)[1:3] == [["test", "0", "7"], ["bench", "0", "7"]]


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    write(tmp_path, steps=[step("bench", 124)], bench=bench())
    with (tmp_path / "bench.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"figure": "forward", "dtype": "fl')
    found = report(tmp_path)
    assert found.returncode == 0
    assert found.stderr.startswith("bench.jsonl: not JSON, perhaps cut off: ")
    assert ["bench", "124 (cut off)", "7"] in rows(tmp_path)
    kept = json.loads((tmp_path / "gpu_bench.json").read_text(encoding="utf-8"))
    assert len(kept) == len(list(bench())) + 1


def test_quiet_writes_without_printing(tmp_path):
    write(tmp_path, steps=[step("build")])
    found = report(tmp_path, "--quiet")
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpu_bench.json", "report.md", "steps.jsonl"]


def test_a_folder_that_does_not_exist_is_an_error(tmp_path):
    found = report(tmp_path / "none")
    assert found.returncode == 2
    assert f"'{tmp_path / 'none'}' is not a folder" in found.stderr


@pytest.mark.parametrize(("first", "names"), [("build", ["build"]), ("peers", ["test", "peers"])])
def test_only_build_begins_a_new_report(tmp_path, first, names):
    write(tmp_path, steps=[step("test", 1)], bench=bench())
    command = [str(GPU / "run.sh"), str(tmp_path), first]
    environment = {**os.environ, "GPU_PYTHON": sys.executable, "GPU_DRY": "1", "GPU_RESULTS": ""}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert found.returncode == 0, found.stderr  # a skipped step is no failure
    table = [row[0] for row in rows(tmp_path)]
    assert table[: table.index("wanted")] == ["step", *names]  # the first table is that of the steps
    assert (tmp_path / "bench.jsonl").exists() == (first != "build")
    assert rows(tmp_path)[len(names)][1].startswith("skipped: ")


def test_the_report_is_written_after_every_step(tmp_path):
    command = [str(GPU / "run.sh"), str(tmp_path), "build", "unknown"]  # exits before the report at the end
    environment = {**os.environ, "GPU_PYTHON": sys.executable, "GPU_DRY": "1"}
    assert subprocess.run(command, capture_output=True, check=False, env=environment).returncode == 2
    assert rows(tmp_path)[1][0] == "build"
    assert (tmp_path / "gpu_bench.json").exists()
