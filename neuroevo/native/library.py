"""The only loader of the native libraries, and the one way to call them.

They are in neuroevo/_lib, where `make build` puts them, or in the folder that the variable NEUROEVO_LIB_DIR names,
such as that of a build with sanitizers.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from neuroevo.core.bounds import MAX_THREADS
from neuroevo.core.errors import NativeError, UserError
from neuroevo.core.problems import did_you_mean
from neuroevo.native import cpu, ffi
from neuroevo.native.ffi import ErrorKind, error_of

LIBRARY_FOLDER = Path(os.environ.get("NEUROEVO_LIB_DIR") or Path(__file__).parents[1] / "_lib")
DEVICES = ("auto", "cpu", "gpu")  # what users choose from
BACKENDS = {"cpu": "cpu", "gpu": "cuda"}  # of populations, by the device that evaluates them
_GYMNASIUM_LIBRARY = "libneuroevo_gymnasium.so"
_CUDA_LIBRARY = "libneuroevo_cuda.so"


@dataclass(frozen=True)
class Gpu:
    """The GPU of this machine.

    Attributes:
        why_not: Why it cannot be used; "" where it can.
        name: Model and compute capability.
        cuda: CUDA versions of the GPU backend and of the driver; "" without the backend.
    """

    why_not: str
    name: str = ""
    cuda: str = ""

    @property
    def usable(self) -> bool:
        """True if networks can be evaluated on it."""
        return not self.why_not


def library_path(name: str) -> Path:
    """Return the file of a native library: of a portable build, in the folder of the best level that has it.

    Args:
        name: The file's name.

    Raises:
        FileNotFoundError: It is not built.
        UserError: The value of NEUROEVO_CPU is not supported.
    """
    path = _find(name)
    if path is None:
        raise _not_built(name)
    return path


def _find(name: str) -> Path | None:
    level = cpu_level()
    folders = cpu.chain(level) if build_info().get("arch") == cpu.PORTABLE else []
    paths = [*(LIBRARY_FOLDER / folder / name for folder in folders), LIBRARY_FOLDER / name]
    return next((path for path in paths if path.is_file()), None)


def _not_built(name: str) -> FileNotFoundError:
    path = LIBRARY_FOLDER / name
    instead = " or `pip install neuroevo-ale` installs it" if name == "libneuroevo_atari.so" else ""
    return FileNotFoundError(f"native library {name} is not built: expected {path}; `make build` makes it{instead}")


@functools.cache
def cpu_level() -> str:
    """Return what the native code in use was compiled for: in a portable build a level of native.cpu, chosen once.

    Raises:
        UserError: The value of NEUROEVO_CPU is not supported.
    """
    return cpu.choose(str(build_info().get("arch")))


@functools.cache
def core() -> ctypes.CDLL:
    """Load the core with its C interface (custom_ops/c_api/neuroevo.h), and every environment family that was built.

    Warns of a family that cannot be loaded, such as MuJoCo's after a change of the mujoco package; the others work.

    Raises:
        FileNotFoundError: The core is not built.
    """
    library = ffi.bind(_load(library_path("libneuroevo_core.so")), ffi.CORE)
    for family in str(build_info().get("families", "")).split():
        name = f"libneuroevo_{family}.so"
        if path := _find(name):
            try:
                if family == "mujoco":
                    _load_mujoco()
                _load(path)
            except OSError as error:
                warnings.warn(f"{name} cannot be loaded ({error}); `make build` rebuilds it", stacklevel=2)
    return library


def require_family(family: str) -> None:
    """Check that the library of a family is loaded.

    Args:
        family: The family's name in the native code; the native code reports one that was not built.

    Raises:
        FileNotFoundError: The library was built and is gone.
        NativeError: It cannot be loaded.
    """
    core()
    if family not in str(build_info().get("families", "")).split():
        return
    path = library_path(f"libneuroevo_{family}.so")
    try:
        _load(path)
    except OSError as error:
        raise NativeError(f"{path.name} cannot be loaded ({error}); `make build` rebuilds it") from None


def _load(path: Path) -> ctypes.CDLL:
    """Load a library.

    Raises:
        OSError: It cannot be loaded, or it is truncated, so that loading it would end the process.
    """
    with path.open("rb") as file:
        header = file.read(64)
    if header.startswith(b"\x7fELF\2") and len(header) == 64:  # the table of sections is its end
        (begin,), (size, count) = struct.unpack_from("<Q", header, 40), struct.unpack_from("<HH", header, 58)
        if (end := begin + size * count) > path.stat().st_size:
            raise OSError(f"{path} has {path.stat().st_size:,} bytes, expected {end:,}")
    return ctypes.CDLL(str(path))


def _load_mujoco() -> None:
    """Load the C library of the mujoco package, wherever it is, so that the native library finds it loaded.

    Raises:
        OSError: The library exists, but cannot be loaded.
    """
    package = find_spec("mujoco")
    folders = package.submodule_search_locations if package else None
    for path in [path for folder in folders or [] for path in Path(folder).glob("libmujoco.so.*")]:
        ctypes.CDLL(str(path))


def call(
    function: str,
    *arguments: object,
    library: ctypes.CDLL | None = None,
    raises: Callable[[ErrorKind, str], Exception] = error_of,
) -> None:
    """Call a function that returns a code.

    Args:
        function: Its name without "neuroevo_".
        arguments: What neuroevo/native/ffi.py says that it takes. Arrays live until it returns.
        library: The function's library; None: the core.
        raises: Makes the exception to raise from the kind of error and the core's message.

    Raises:
        NativeError: The function failed; or another exception, if `raises` makes one.
    """
    code = getattr(library or core(), f"neuroevo_{function}")(*map(ffi.address, arguments))
    if code != 0:
        raise raises(ErrorKind(code), core().neuroevo_last_error().decode())


@functools.cache
def cuda() -> ctypes.CDLL | None:
    """Load the GPU backend with its C interface (custom_ops/c_api/cuda.h); return None where it was not built.

    Loading it registers the population backend "cuda", whether or not there is a GPU.

    Raises:
        OSError: It is built, but cannot be loaded.
    """
    core()
    # A library that an earlier build left behind does not fit the others.
    return load_cuda(LIBRARY_FOLDER / _CUDA_LIBRARY) if build_info().get("cuda") else None


def load_cuda(path: Path) -> ctypes.CDLL:
    """Load a library with the C interface of the GPU backend; the core must have been loaded.

    Args:
        path: The library's file.

    Raises:
        OSError: It cannot be loaded.
    """
    return ffi.bind(_load(path), ffi.CUDA)


@functools.cache
def gpu() -> Gpu:
    """Return the GPU, or why none can be used."""
    try:
        library = cuda()
    except OSError as error:
        return Gpu(f"its library cannot be loaded: {error}")
    if library is None:
        return Gpu(
            "the native libraries were built without nvcc; where there is one, `make build` adds the GPU backend"
        )
    cuda_versions = library.neuroevo_cuda_versions().decode()
    why_not = library.neuroevo_cuda_why_not()
    if why_not is not None:
        return Gpu(why_not.decode(), cuda=cuda_versions)
    return Gpu("", library.neuroevo_cuda_name().decode(), cuda_versions)


def free_bytes() -> int:
    """Return the bytes of memory that this process may still use, by the machine and by its control groups."""
    return core().neuroevo_free_bytes()


def gpu_free_bytes() -> int:
    """Return the free bytes of the GPU's memory; 0 where no GPU can be used."""
    library = cuda() if gpu().usable else None
    return 0 if library is None else library.neuroevo_cuda_free_bytes()


def choose_device(device: str) -> str:
    """Resolve the device that a user has chosen.

    Args:
        device: "auto", "cpu" or "gpu".

    Returns:
        "cpu" or "gpu".

    Raises:
        UserError: The device is unknown or cannot be used.
    """
    if device not in DEVICES:
        raise UserError(f"device '{device}' is unknown{did_you_mean(device, DEVICES)}, expected auto, cpu or gpu")
    if device == "gpu" and not gpu().usable:
        raise UserError(f"device 'gpu' cannot be used: {gpu().why_not}; expected cpu or auto")
    if device == "auto":
        return "gpu" if gpu().usable else "cpu"
    return device


def set_threads(threads: int) -> None:
    """Set the number of worker threads of the env pools and populations made from now on.

    Args:
        threads: In [1, 4096].

    Raises:
        ValueError: The number is out of range.
    """
    if threads > MAX_THREADS:  # what does not fit 32 bits would arrive as another number
        raise ValueError(f"threads is {threads}, expected one in [1, {MAX_THREADS}]")
    call("set_threads", threads, raises=lambda _, words: ValueError(words))


def get_threads() -> int:
    """Return the worker threads that a pool made now would get; by default one per core that this process may use.

    Raises:
        NativeError: That many threads cannot be started.
    """
    threads = core().neuroevo_get_threads()
    if threads == 0:
        raise error_of(ErrorKind.INTERNAL, core().neuroevo_last_error().decode())
    return threads


def busy_seconds() -> float:
    """Return the time that the pool's threads have spent with environments and networks so far, summed over them."""
    return core().neuroevo_busy_seconds()


def end_stuck_environments(seconds: float) -> None:
    """End the processes of Gymnasium's environments that have been at one reset or step for too long.

    Calls that wait for them get an error. This affects all pools of this process: it is for the end of a run.

    Args:
        seconds: How long one reset or step may take.
    """
    if path := _find(_GYMNASIUM_LIBRARY):
        _gymnasium(path).neuroevo_gymnasium_end_stuck(seconds)


@functools.cache
def _gymnasium(path: Path) -> ctypes.CDLL:
    return ffi.bind(_load(path), ffi.GYMNASIUM)


def build_info() -> dict[str, object]:
    """Return how the native libraries were built: compiler, architecture, versions.

    Raises:
        FileNotFoundError: They are not built.
    """
    path = LIBRARY_FOLDER / "build_info.json"
    if not path.is_file():
        raise _not_built(path.name)
    return json.loads(path.read_text())
