"""Device on which networks are evaluated: its choice, its errors, and identical episodes on each."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from neuroevo.benchmarks.rates import Rollout
from neuroevo.cli import app
from neuroevo.core.behavior import Behavior
from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.native.population import Population
from neuroevo.networks import architectures
from neuroevo.networks.network import Network
from neuroevo.rollout import layout
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.rollout.layout import default_layout
from neuroevo.sessions.provenance import machine
from tests.support import cuda_emulated
from tests.support.native_rollout import run_episodes

without_gpu = pytest.mark.skipif(library.gpu().usable, reason=f"there is a GPU: {library.gpu().name}")


@pytest.fixture
def fresh(monkeypatch):
    """Clear the cached information about GPUs before and after a test."""
    library.cuda.cache_clear(), library.gpu.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    library.cuda.cache_clear(), library.gpu.cache_clear()


@without_gpu
def test_without_a_gpu_auto_is_the_cpu_and_gpu_is_refused_with_the_reason():
    assert library.choose_device("auto") == library.choose_device("cpu") == "cpu"
    assert library.gpu_free_bytes() == 0
    if library.build_info()["cuda"]:
        assert re.search("driver|GPU", library.gpu().why_not)
    for make in (
        lambda: library.choose_device("gpu"),
        lambda: LocalEvaluator("frostbite", "model", device="gpu"),
        lambda: Rollout("frostbite", "model", device="gpu"),
    ):
        with pytest.raises(UserError) as refused:
            make()
        assert str(refused.value) == f"device 'gpu' cannot be used: {library.gpu().why_not}; expected cpu or auto"


@without_gpu
def test_commands_say_what_is_used_and_why():
    run = CliRunner().invoke
    info = run(app, ["info"])
    assert f"networks are evaluated on: the CPU ({library.gpu().why_not})" in info.stdout.splitlines()
    for bench in ("rollout", "pipeline"):
        refused = run(app, ["bench", bench, "--device", "gpu"])
        assert refused.exit_code == 2
        assert (
            refused.stderr.startswith("neuroevo: device 'gpu' cannot be used: ")
            and library.gpu().why_not in refused.stderr
        )
    with LocalEvaluator("frostbite", "model", lanes=1, slots=1) as made:
        assert made.device == "cpu"


@pytest.mark.skipif(not library.build_info()["cuda"], reason="built without nvcc")
@pytest.mark.parametrize("behind", [1, 0])
def test_info_says_that_a_driver_is_too_old_or_has_no_card(behind, tmp_path):
    """With a fake driver library, of the major version before the backend's or of the same version."""
    built, major = re.match(r"built with (([0-9]+)\.[0-9]+), ", library.gpu().cuda).groups()
    driver = int(major) - behind
    (tmp_path / "driver.cc").write_text(
        f"""extern "C" int cuDriverGetVersion(int* version) {{ return *version = {driver * 1000 + 40}, 0; }}
        extern "C" int cuInit(unsigned) {{ return 100; }} // CUDA_ERROR_NO_DEVICE"""
    )
    subprocess.run(["g++", "-shared", "-fPIC", "-o", "libcuda.so.1", "driver.cc"], cwd=tmp_path, check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    info = subprocess.run([sys.executable, "-m", "neuroevo", "info"], env=environment, capture_output=True, text=True)
    why_not = (
        f"the NVIDIA driver supports CUDA {driver}.4, expected {major}.0 or later for a GPU backend built with {built}"
        f": update the driver, or rebuild with the nvcc of CUDA {driver}"
        if behind
        else "no NVIDIA GPU is visible to this process"
    )
    lines = info.stdout.splitlines()
    assert f"CUDA: built with {built}, the driver supports {driver}.4" in lines
    assert f"networks are evaluated on: the CPU ({why_not})" in lines


@without_gpu
@pytest.mark.skipif(not library.build_info()["cuda"], reason="built without nvcc")
@pytest.mark.parametrize(
    "make",
    [
        "Population(['input float32 3; dense 2 1.0'], 1, backend='cuda')",
        "LocalEvaluator('pong', 'model', lanes=1, slots=1, backend='cuda')",
    ],
)
def test_the_backend_is_known_to_who_has_not_asked_for_a_gpu(make):
    """In a separate process, since this process has loaded the library."""
    names = "from neuroevo.native.population import Population\nfrom neuroevo.rollout.evaluator import LocalEvaluator"
    code = f"{names}\n{make}"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert failed.returncode == 1 and failed.stderr.rstrip().endswith(library.gpu().why_not)


def test_unknown_devices():
    with pytest.raises(UserError, match="device 'gpuu' .*gpu.*auto, cpu or gpu"):
        library.choose_device("gpuu")


def test_libraries_built_without_nvcc_say_so(fresh):
    """Even where an earlier build left the backend's library behind."""
    fresh.setattr(library, "build_info", lambda: {"cuda": ""})
    assert library.choose_device("auto") == "cpu"
    with pytest.raises(UserError, match="without nvcc; .*make build"):
        library.choose_device("gpu")


def test_a_broken_library_is_a_reason_and_no_failure(fresh, tmp_path):
    fresh.setattr(library, "build_info", lambda: {"cuda": "nvcc"})
    library.core()
    fresh.setattr(library, "LIBRARY_FOLDER", tmp_path)
    assert "cannot be loaded" in library.gpu().why_not and "libneuroevo_cuda.so" in library.gpu().why_not
    (tmp_path / "libneuroevo_cuda.so").write_bytes(b"\x7fELF and then nothing")
    library.cuda.cache_clear(), library.gpu.cache_clear()
    assert "cannot be loaded" in library.gpu().why_not
    assert library.choose_device("auto") == "cpu"


def test_the_backend_tells_its_name_and_memory():
    library = cuda_emulated.load()
    assert library.neuroevo_cuda_why_not() is None
    assert library.neuroevo_cuda_name() == b"CUDA emulated on the CPU"
    assert library.neuroevo_cuda_versions() == b"emulated on the CPU"
    assert library.neuroevo_cuda_free_bytes() == 4 << 30


def test_layouts(monkeypatch):
    assert (default_layout(5, "cpu"), default_layout(5, "cpu", light=True)) == ((5, 1), (5, 16))
    assert default_layout(5, "cpu", members=True) == (5, 32)
    for free, threads, slots in ((140e9, 16, 64), (140e9, 1, 4), (8e9, 64, 44), (0.0, 4, 1)):
        monkeypatch.setattr(layout.library, "gpu_free_bytes", lambda free=free: free)
        assert default_layout(threads, "gpu") == (3, slots)
        assert 3 * slots * 29.2e6 <= max(free / 2, 3 * 29.2e6)


def test_no_network_has_longer_rows_than_layouts_count_with():
    for network in architectures.NETWORKS.values():
        text = architectures.to_text(network(architectures.input_line("uint8", (84, 84, 4)), 18))
        (dimension,) = Population([text], 1).dimensions
        assert 4 * dimension < layout._LARGEST_ROW_BYTES


def test_the_machine_s_gpus_are_listed():
    assert isinstance(machine()["gpus"], list)
    assert not library.gpu().usable or any(library.gpu().name.startswith(model) for model in machine()["gpus"])


def memories(
    backend: str, dtype: str, steps: int, engine: str = "native", episodes: int = 4
) -> tuple[list[bytes], list, list]:
    """The emulators' memory after one episode of each of several networks from the same start, on two lanes of two
    slots; returns and steps. Only the networks' actions make the memories differ."""
    played = [Episode(Genome(0).child(i, 0.5), 3, steps) for i in range(episodes)]
    network = Network("model", dtype=dtype)
    layout = {"lanes": 2, "slots": episodes // 2, "threads": 2, "behavior": Behavior()}
    with LocalEvaluator("frostbite", network, backend=backend, engine=engine, **layout) as one:
        outcomes = one.evaluate(played)
    return sorted(ram.tobytes() for ram in outcomes.behaviors), outcomes.returns.tolist(), outcomes.steps.tolist()


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_emulated_kernels_play_the_same_episodes_as_the_cpu(dtype, engine):
    """Bit-identical emulators, with weights computed from a parent's row and concurrent calls of both lanes."""
    cuda_emulated.load()
    expected = memories("cpu", dtype, steps=6)
    assert len(set(expected[0])) > 1  # networks have different outcomes
    assert memories("cuda_emulated", dtype, steps=6, engine=engine) == expected


@pytest.mark.gpu
@pytest.mark.skipif(not library.gpu().usable, reason=f"no GPU: {library.gpu().why_not}")
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("network", ["model", "large_model"])
def test_a_gpu_plays_the_same_episodes_as_the_cpu(dtype, network, engine):
    episodes = [Episode(Genome(i // 4).child(i, 0.05), i, 400) for i in range(48)]
    outcomes = []
    for device in ("cpu", "gpu"):
        played = Network(network, dtype=dtype)
        with LocalEvaluator("frostbite", played, device=device, engine=engine) as one:
            assert one.device == device
            outcomes.append(one.evaluate(episodes))
    np.testing.assert_array_equal(outcomes[0].returns, outcomes[1].returns)
    np.testing.assert_array_equal(outcomes[0].steps, outcomes[1].steps)
    assert len(set(outcomes[0].returns)) > 3


def test_the_runner_without_tensorflow_takes_the_backend_too():
    cuda_emulated.load()
    episodes = [Episode(Genome(i), 3, 5) for i in range(2)]
    outcomes = [
        run_episodes(
            registry.resolve("frostbite"), [architectures.model], episodes, lanes=2, slots=1, backend=backend
        ).steps.tolist()
        for backend in ("cpu", "cuda_emulated")
    ]
    assert outcomes[0] == outcomes[1] == [5, 5]
