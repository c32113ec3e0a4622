"""The table of the C interface against its headers, error kinds of both interfaces, and arrays as pointers."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from neuroevo.core.errors import EnvironmentFailure, NativeArgumentError, NativeError
from neuroevo.envs import registry
from neuroevo.native import ffi
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.ffi import ErrorKind, error_of
from neuroevo.native.library import call
from neuroevo.rollout.tensorflow.ops import in_core_words, kind_of, load_ops

HEADERS = Path(__file__).parents[2] / "custom_ops" / "c_api"


def declared() -> dict[str, int]:
    """Return the functions of the headers, with their numbers of arguments."""
    found = {}
    for header in HEADERS.glob("*.h"):
        text = re.sub(r"/\*.*?\*/|//[^\n]*|typedef struct \{.*?\} \w+;", "", header.read_text(), flags=re.DOTALL)
        for name, arguments in re.findall(r"neuroevo_(\w+)\(([^)]*)\);", text):
            found[name] = 0 if arguments.strip() in ("", "void") else arguments.count(",") + 1
    return found


def test_every_function_is_bound_with_as_many_arguments_as_it_has() -> None:
    expected = declared()
    bound = {name: len(types) - 1 for name, types in {**ffi.CORE, **ffi.CUDA}.items()}
    assert len(expected) > 40 and bound == expected


def test_kinds_have_the_numbers_of_the_header() -> None:
    codes = re.findall(r"NEUROEVO_(\w+) = (\d+)", (HEADERS / "neuroevo.h").read_text())
    assert dict(codes) == {"OK": "0", **{kind.name: str(kind.value) for kind in ErrorKind}}


@pytest.mark.parametrize("kind", ErrorKind)
def test_what_is_raised_depends_on_the_kind_alone(kind: ErrorKind) -> None:
    error = error_of(kind, "gymnasium environment 'x' is only a word")
    asked_for = {ErrorKind.INVALID_ARGUMENT: NativeArgumentError, ErrorKind.NOT_FOUND: NativeArgumentError}
    assert type(error) is {ErrorKind.ENVIRONMENT: EnvironmentFailure, **asked_for}.get(kind, NativeError)


def test_a_kind_crosses_the_c_interface() -> None:
    raised: list[ErrorKind] = []

    def note(kind: ErrorKind, words: str) -> Exception:
        raised.append(kind)
        return LookupError(words)

    pool = EnvPool(registry.resolve("hard_maze"), 2)
    for function, arguments, words in (
        ("env_drop_normalizers", (np.array([4]), 1), "normalizer 4 is not set"),
        ("env_failure", (9, ffi.ref(ctypes.c_char_p())), r"slot 9 is out of range \[0, 2\)"),
        ("env_record_behaviors", (-1, 1), "every is -1"),
    ):
        with pytest.raises(LookupError, match=words):
            call(function, pool.handle, *arguments, raises=note)
    assert raised == [ErrorKind.NOT_FOUND, ErrorKind.OUT_OF_RANGE, ErrorKind.INVALID_ARGUMENT]


def test_what_is_null_is_refused() -> None:
    asked = re.compile("(env|population|rollout|vector)_.*(?<!_make)(?<!_make_low_rank)(?<!_start)(?<!_free)")
    names = [name for name in ffi.CORE if asked.fullmatch(name)]
    assert len(names) > 30
    for name in names:
        with pytest.raises(NativeArgumentError, match="is null"):
            call(name, *(None if kind in (ctypes.c_void_p, ctypes.c_char_p) else 0 for kind in ffi.CORE[name][1:]))
    pool, slots = EnvPool(registry.resolve("hard_maze"), 2), np.array([1])
    pool.reset([1], [0], [0])
    for function, arrays in (("env_step", 3), ("env_observe", 1), ("env_render", 1), ("env_state", 1)):
        with pytest.raises(NativeArgumentError, match="is null, expected 1 entries"):
            call(function, pool.handle, slots, 1, *[None] * arrays)
    with pytest.raises(NativeArgumentError, match="seeds is null, expected 3 entries"):
        call("noise_sum", None, None, 3, 0, 0, None, None, None)


def test_a_kind_crosses_tensorflow() -> None:
    ops, lane = load_ops(), tf.constant(3, tf.int64)
    queue = ops.episode_queue_make(lanes=1, slots_per_lane=2, first_row=0)

    @tf.function(autograph=False)
    def in_a_loop(queue: tf.Tensor) -> tf.Tensor:
        def body(i: tf.Tensor) -> tuple[tf.Tensor]:
            with tf.control_dependencies([ops.episode_queue_take(queue, lane).closed]):
                return (i + 1,)

        return tf.while_loop(lambda i: i < 2, body, (tf.constant(0),))[0]

    for run in (lambda: ops.episode_queue_take(queue, lane), lambda: in_a_loop(queue)):
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            run()
        assert kind_of(raised.value) == ErrorKind.OUT_OF_RANGE
        error = in_core_words(raised.value)
        assert type(error) is NativeError and str(error) == "lane 3 is out of range [0, 1)"
    with pytest.raises(tf.errors.OpError) as own:
        tf.raw_ops.Reshape(tensor=[1.0, 2.0], shape=[3])
    assert kind_of(own.value) == ErrorKind.INTERNAL  # it has no payload


def test_arrays_that_are_not_contiguous_are_refused() -> None:
    with pytest.raises(ValueError, match="not contiguous"):
        none = np.zeros(0, np.float32)
        call("noise_sum", np.zeros(4, np.uint64)[::2], np.zeros(2, np.float32), 2, 0, 0, none, None, None)


def test_ctrl_c_while_arguments_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(value: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(ffi, "address", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call("set_threads", 1)
    types = {kind for signature in {**ffi.CORE, **ffi.CUDA}.values() for kind in signature if kind is not None}
    assert {kind.__module__ for kind in types} <= {"ctypes", "_ctypes"}  # no type runs Python code during conversion
