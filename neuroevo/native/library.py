"""Loading of the native libraries, and calls to their functions; all other modules use this one.

The libraries are in neuroevo/_lib, where `make build` puts them, or in the folder set by the variable NEUROEVO_LIB_DIR,
such as a build with sanitizers.
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
DEVICES = ("auto", "cpu", "gpu")  # values of users' settings
BACKENDS = {"cpu": "cpu", "gpu": "cuda"}  # population backends by device
_GYMNASIUM_LIBRARY = "libneuroevo_gymnasium.so"
_CUDA_LIBRARY = "libneuroevo_cuda.so"


@dataclass(frozen=True)
class Gpu:
    """The GPU of this machine.

    Attributes:
        why_not: Why the GPU is unusable; "" if it is usable.
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
    """Return the file of a native library; in a portable build, that of the highest usable level.

    Args:
        name: File name of the library.

    Raises:
        FileNotFoundError: The library is not built.
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
    """Return the architecture of the native code in use; for a portable build, a level of native.cpu, chosen once.

    Raises:
        UserError: The value of NEUROEVO_CPU is not supported.
    """
    return cpu.choose(str(build_info().get("arch")))


@functools.cache
def core() -> ctypes.CDLL:
    """Load the core with its C interface (custom_ops/c_api/neuroevo.h), and every environment family that was built.

    Warns of each family that cannot be loaded, such as MuJoCo's after an update of the mujoco package.

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
        family: Name of the family in the native code, which itself reports a family that was not built.

    Raises:
        FileNotFoundError: The library was built but is missing now.
        NativeError: The library cannot be loaded.
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
        OSError: The library cannot be loaded, or is truncated, so that loading it would crash the process.
    """
    with path.open("rb") as file:
        header = file.read(64)
    if header.startswith(b"\x7fELF\2") and len(header) == 64:  # the file ends with its section header table
        (begin,), (size, count) = struct.unpack_from("<Q", header, 40), struct.unpack_from("<HH", header, 58)
        if (end := begin + size * count) > path.stat().st_size:
            raise OSError(f"{path} has {path.stat().st_size:,} bytes, expected {end:,}")
    return ctypes.CDLL(str(path))


def _load_mujoco() -> None:
    """Load the C library of the mujoco package, so that the native library uses it.

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
    """Call a C function that returns an error code.

    Args:
        function: Name of the function without "neuroevo_".
        arguments: Arguments as declared in neuroevo/native/ffi.py. Arrays must live until the function returns.
        library: The function's library; None for the core.
        raises: Function that creates the exception from the error kind and the core's message.

    Raises:
        NativeError: The function failed; or another exception created by `raises`.
    """
    code = getattr(library or core(), f"neuroevo_{function}")(*map(ffi.address, arguments))
    if code != 0:
        raise raises(ErrorKind(code), core().neuroevo_last_error().decode())


@functools.cache
def cuda() -> ctypes.CDLL | None:
    """Load the GPU backend with its C interface (custom_ops/c_api/cuda.h); return None if it was not built.

    Loading it registers the population backend "cuda", even without a GPU.

    Raises:
        OSError: The library is built, but cannot be loaded.
    """
    core()
    # A library left over from an earlier build is incompatible with the current ones.
    return load_cuda(LIBRARY_FOLDER / _CUDA_LIBRARY) if build_info().get("cuda") else None


def load_cuda(path: Path) -> ctypes.CDLL:
    """Load a library with the C interface of the GPU backend; the core must have been loaded.

    Args:
        path: The library's file.

    Raises:
        OSError: The library cannot be loaded.
    """
    return ffi.bind(_load(path), ffi.CUDA)


@functools.cache
def gpu() -> Gpu:
    """Return the GPU, or why no GPU is usable."""
    try:
        library = cuda()
    except OSError as error:
        return Gpu(f"its library cannot be loaded: {error}")
    if library is None:
        return Gpu(
            "the native libraries were built without nvcc; install nvcc and run `make build` to add the GPU backend"
        )
    cuda_versions = library.neuroevo_cuda_versions().decode()
    why_not = library.neuroevo_cuda_why_not()
    if why_not is not None:
        return Gpu(why_not.decode(), cuda=cuda_versions)
    return Gpu("", library.neuroevo_cuda_name().decode(), cuda_versions)


def free_bytes() -> int:
    """Return the bytes of memory available to this process, as limited by the machine and its control groups."""
    return core().neuroevo_free_bytes()


def gpu_free_bytes() -> int:
    """Return the free bytes of the GPU's memory; 0 if no GPU is usable."""
    library = cuda() if gpu().usable else None
    return 0 if library is None else library.neuroevo_cuda_free_bytes()


def choose_device(device: str) -> str:
    """Resolve the device that a user has chosen.

    Args:
        device: "auto", "cpu" or "gpu".

    Returns:
        "cpu" or "gpu".

    Raises:
        UserError: The device is unknown or unusable.
    """
    if device not in DEVICES:
        raise UserError(f"device '{device}' is unknown{did_you_mean(device, DEVICES)}, expected auto, cpu or gpu")
    if device == "gpu" and not gpu().usable:
        raise UserError(f"device 'gpu' cannot be used: {gpu().why_not}; expected cpu or auto")
    if device == "auto":
        return "gpu" if gpu().usable else "cpu"
    return device


def set_threads(threads: int) -> None:
    """Set the number of worker threads of env pools and populations created after the call.

    Args:
        threads: In [1, 4096].

    Raises:
        ValueError: The number is out of range.
    """
    if threads > MAX_THREADS:  # ctypes would truncate it to 32 bits
        raise ValueError(f"threads is {threads}, expected an integer in [1, {MAX_THREADS}]")
    call("set_threads", threads, raises=lambda _, words: ValueError(words))


def get_threads() -> int:
    """Return the number of worker threads of new pools; by default one per core that this process may use.

    Raises:
        NativeError: That many threads cannot be started.
    """
    threads = core().neuroevo_get_threads()
    if threads == 0:
        raise error_of(ErrorKind.INTERNAL, core().neuroevo_last_error().decode())
    return threads


def busy_seconds() -> float:
    """Return the total time that the pool's threads have spent in environments and networks."""
    return core().neuroevo_busy_seconds()


def end_stuck_environments(seconds: float) -> None:
    """End the processes of Gymnasium environments whose current reset or step takes too long.

    Calls that wait for these processes fail. This affects all pools of this process; use it at the end of a run.

    Args:
        seconds: Time limit of a reset or step.
    """
    if path := _find(_GYMNASIUM_LIBRARY):
        _gymnasium(path).neuroevo_gymnasium_end_stuck(seconds)


@functools.cache
def _gymnasium(path: Path) -> ctypes.CDLL:
    return ffi.bind(_load(path), ffi.GYMNASIUM)


def build_info() -> dict[str, object]:
    """Return build information of the native libraries: compiler, architecture, versions.

    Raises:
        FileNotFoundError: The libraries are not built.
    """
    path = LIBRARY_FOLDER / "build_info.json"
    if not path.is_file():
        raise _not_built(path.name)
    return json.loads(path.read_text())
