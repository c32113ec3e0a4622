"""The only loader of the native libraries in neuroevo/_lib, which `make build` makes."""

from __future__ import annotations

import ctypes
import functools
import json
import warnings
from dataclasses import dataclass
from pathlib import Path

from neuroevo.core.bounds import MAX_THREADS
from neuroevo.core.errors import UserError
from neuroevo.core.problems import did_you_mean

LIBRARY_FOLDER = Path(__file__).parents[1] / "_lib"
DEVICES = ("auto", "cpu", "gpu")  # what users choose from
BACKENDS = {"cpu": "cpu", "gpu": "cuda"}  # of populations, by the device that evaluates them
_GYMNASIUM_LIBRARY = "libneuroevo_gymnasium.so"
_FAMILY_LIBRARIES = ("libneuroevo_atari.so", "libneuroevo_mujoco.so", "libneuroevo_hard_maze.so", _GYMNASIUM_LIBRARY)
_CUDA_LIBRARY = "libneuroevo_cuda.so"


@dataclass(frozen=True)
class Gpu:
    """The GPU of this machine. why_not: why it cannot be used, "" where it can. name: model and compute capability."""

    why_not: str
    name: str = ""

    @property
    def usable(self) -> bool:
        """Whether networks can be evaluated on it."""
        return not self.why_not


def library_path(name: str) -> Path:
    """The file of a native library. FileNotFoundError: it is not built."""
    path = LIBRARY_FOLDER / name
    if not path.is_file():
        raise FileNotFoundError(f"native library {name} is not built: expected {path}; `make build` makes it")
    return path


@functools.cache
def core() -> ctypes.CDLL:
    """The core with its C interface (custom_ops/c_api/neuroevo.h), and every environment family that was built.

    Warns of a family that cannot be loaded, such as MuJoCo's after a change of the mujoco package; the others work.
    """
    library = ctypes.CDLL(str(library_path("libneuroevo_core.so")))
    for name in _FAMILY_LIBRARIES:
        if (LIBRARY_FOLDER / name).is_file():
            try:
                ctypes.CDLL(str(LIBRARY_FOLDER / name))
            except OSError as error:
                warnings.warn(f"{name} cannot be loaded ({error}); `make build` makes it anew", stacklevel=2)
    return library


@functools.cache
def cuda() -> ctypes.CDLL | None:
    """The GPU backend with its C interface (custom_ops/c_api/cuda.h); None where it was not built.

    Loading it makes the population backend "cuda" known, whether or not there is a GPU.
    """
    core()
    # A library that an earlier build left behind does not fit the others.
    return load_cuda(LIBRARY_FOLDER / _CUDA_LIBRARY) if build_info().get("cuda") else None


def load_cuda(path: Path) -> ctypes.CDLL:
    """A library with the C interface of the GPU backend; the core must have been loaded."""
    library = ctypes.CDLL(str(path))
    library.neuroevo_cuda_why_not.restype = library.neuroevo_cuda_name.restype = ctypes.c_char_p
    library.neuroevo_cuda_free_bytes.restype = ctypes.c_int64
    return library


@functools.cache
def gpu() -> Gpu:
    """The GPU, or why none can be used."""
    try:
        library = cuda()
    except OSError as error:
        return Gpu(f"its library cannot be loaded: {error}")
    if library is None:
        return Gpu(
            "the native libraries were built without nvcc; where there is one, `make build` adds the GPU backend"
        )
    why_not = library.neuroevo_cuda_why_not()
    if why_not is not None:
        return Gpu(why_not.decode())
    return Gpu("", library.neuroevo_cuda_name().decode())


def gpu_free_bytes() -> int:
    """Of the GPU's memory now; 0 where none can be used."""
    return cuda().neuroevo_cuda_free_bytes() if gpu().usable else 0


def choose_device(device: str) -> str:
    """ "cpu" or "gpu", whichever "auto", "cpu" or "gpu" means here. UserError: it is none of them or cannot be used."""
    if device not in DEVICES:
        raise UserError(f"device '{device}' is unknown{did_you_mean(device, DEVICES)}, expected auto, cpu or gpu")
    if device == "gpu" and not gpu().usable:
        raise UserError(f"device 'gpu' cannot be used: {gpu().why_not}; expected cpu or auto")
    if device == "auto":
        return "gpu" if gpu().usable else "cpu"
    return device


def set_threads(threads: int) -> None:
    """Worker threads of the env pools and populations made from now on; in [1, 4096]. ValueError."""
    if threads > MAX_THREADS:  # what does not fit 32 bits would arrive as another number
        raise ValueError(f"threads is {threads}, expected one in [1, {MAX_THREADS}]")
    if core().neuroevo_set_threads(threads) != 0:
        core().neuroevo_last_error.restype = ctypes.c_char_p
        raise ValueError(core().neuroevo_last_error().decode())


def get_threads() -> int:
    """Worker threads that a pool made now would get; by default one per core that this process may run on."""
    threads = core().neuroevo_get_threads()
    if threads == 0:
        core().neuroevo_last_error.restype = ctypes.c_char_p
        raise RuntimeError(core().neuroevo_last_error().decode())
    return threads


def busy_seconds() -> float:
    """Time that the pool's threads have spent with environments and networks so far, summed over the threads."""
    core().neuroevo_busy_seconds.restype = ctypes.c_double
    return core().neuroevo_busy_seconds()


def end_stuck_environments(seconds: float) -> None:
    """Ends the processes of Gymnasium's environments that have been at one reset or step for longer than that; who
    waits for them gets an error. Of all pools of this process: for the end of a run.
    """
    if (LIBRARY_FOLDER / _GYMNASIUM_LIBRARY).is_file():
        library = ctypes.CDLL(str(LIBRARY_FOLDER / _GYMNASIUM_LIBRARY))
        library.neuroevo_gymnasium_end_stuck(ctypes.c_double(seconds))


def build_info() -> dict[str, object]:
    """How the native libraries were built: compiler, architecture, versions."""
    return json.loads(library_path("build_info.json").read_text())
