"""A short run of the random op calls of tests/support/fuzz_ops, and its reports of crashes, hangs and leaks."""

import sys

import pytest

from tests.support.fuzz_ops.__main__ import fuzz, watch
from tests.support.fuzz_ops.last_call import LastCalls
from tests.support.fuzz_ops.leaks import ours

OPS = (
    *("env_pool_make", "env_pool_spec", "env_reset", "env_actions", "env_step", "env_observation", "env_behavior"),
    *("env_normalized_observation", "env_set_normalizer", "env_drop_normalizers", "env_record_behaviors", "env_render"),
    *("population_make", "population_dimensions", "population_init", "population_assign", "population_read"),
    *("population_perturb", "population_set_reference", "population_prepare", "population_clear_states"),
    *("population_forward", "population_forward_slots"),
    *("episode_queue_make", "episode_queue_submit", "episode_queue_take", "episode_queue_put"),
    *("episode_queue_results", "episode_queue_close"),
)


@pytest.mark.slow
def test_every_op_does_what_it_should_or_is_refused():
    wrong, counts = fuzz(seed=1, first=0, calls=1000)
    assert wrong == ""
    assert set(counts) == set(OPS)
    without_arguments = {"env_pool_spec", "population_dimensions", "episode_queue_close"}  # rarely rejected
    assert all(
        count["succeeded"] > 0 and (count["refused"] > 0 or op in without_arguments) for op, count in counts.items()
    )


def test_all_ops_are_called():
    from neuroevo.rollout.tensorflow.ops import load_ops

    made = [name for name in dir(load_ops()) if name.startswith(("env_", "population_", "episode_queue_"))]
    assert set(made) - {name for name in made if name.endswith("_eager_fallback")} == set(OPS)


@pytest.mark.parametrize(
    ("end", "words"), [("os.abort()", "ended with -6"), ("time.sleep(99)", "no call for 2 seconds")]
)
def test_the_last_call_of_a_process_that_dies_or_hangs_is_told(tmp_path, end, words):
    last_calls = LastCalls(tmp_path / "calls")
    program = (
        "import os, time, pathlib; from tests.support.fuzz_ops.last_call import LastCalls; "
        f"LastCalls(pathlib.Path({str(tmp_path / 'calls')!r})).write(3, 17, ('env_step', [2**40])); {end}"
    )
    told = watch([sys.executable, "-c", program], last_calls, patience=2)
    assert words in told and "call 17 of thread 3: ('env_step', [1099511627776])" in told


OF_PYTHON = """Direct leak of 40 byte(s) in 1 object(s) allocated from:
    #0 0x7f5b in __interceptor_malloc ../../../../src/libsanitizer/asan/asan_malloc_linux.cpp:69
    #1 0x55d2 in PyMem_RawMalloc (/usr/bin/python3.11+0x1c3)
    #2 0x7f5b in neuroevo::Callback() /home/user/neuroevo/custom_ops/tf/env_kernels.cc:3
"""
OF_CORE = """Indirect leak of 96 byte(s) in 1 object(s) allocated from:
    #0 0x7f5b in operator new(unsigned long) ../../../../src/libsanitizer/asan/asan_new_delete.cpp:95
    #1 0x7f5b in std::__new_allocator<float>::allocate(unsigned long) /usr/include/c++/12/bits/new_allocator.h:137
    #2 0x7f5b in neuroevo::Rows::grow() /home/user/neuroevo/custom_ops/population/rows.cc:12
    #3 0x7f5b in tensorflow::Executor::Run() (/usr/lib/libtensorflow_cc.so.2+0x6f79)
"""


def test_leaks_are_ours_if_our_code_asked_for_the_memory():
    head, end = "\n==7==ERROR: LeakSanitizer: detected memory leaks", "SUMMARY: 136 byte(s) leaked\n"
    assert ours("\n\n".join([head, OF_PYTHON, OF_CORE, OF_PYTHON, end])) == OF_CORE
    assert ours("\n\n".join([head, OF_PYTHON, end])) == ""
