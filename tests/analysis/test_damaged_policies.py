"""Policies of Brax, damaged at random or made to do harm: read as they are, or refused, in bounded memory."""

import pickle
import pickletools

import numpy as np
import pytest
from hypothesis import given

from neuroevo.analysis.brax_policy import read_policy
from neuroevo.analysis.policy_pickle import Statistics
from neuroevo.core.errors import UserError
from tests.support.mutants import bounded, damaged, fuzz, seeds


def policy(**changes):
    """What Brax saves of a small network, with NumPy's arrays."""
    layers = {
        f"hidden_{number}": {
            "kernel": np.arange(units * inputs, dtype=np.float32).reshape(inputs, units),
            "bias": np.ones(units, np.float32),
        }
        for number, (inputs, units) in enumerate([(3, 4), (4, 2)])
    }
    return (None, {"params": {**layers, **changes}})


WHOLE = pickle.dumps(policy(), protocol=4)


@fuzz(300)
@given(seed=seeds)
def test_damaged_policies(tmp_path_factory, seed):
    path = tmp_path_factory.getbasetemp() / "policy"
    path.write_bytes(damaged(WHOLE, seed))
    with bounded(16):
        try:
            read = read_policy(path)
        except UserError as error:
            assert str(error)
            return
    assert (read.observation_size, read.outputs) == (3, 2) or path.read_bytes() != WHOLE
    assert all(array.dtype == np.float32 and np.isfinite(array).all() for array in (*read.kernels, *read.biases))


def test_a_whole_one(tmp_path):
    (tmp_path / "policy").write_bytes(WHOLE)
    read = read_policy(tmp_path / "policy")
    assert np.array_equal(read.kernels[1], policy()[1]["params"]["hidden_1"]["kernel"])


class Call:
    """Pickled as a call."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def doubled(times):
    """A list of lists, each twice in the next, which a pickle writes once each."""
    value = [1.0]
    for _ in range(times):
        value = [value, value]
    return value


LARGE = {
    "an array that the file does not have": pickle.dumps(policy(hidden_0={"kernel": Call(np.ndarray, (10**10,))})),
    "lists in each other": pickle.dumps(policy(hidden_0={"kernel": doubled(30), "bias": doubled(2)})),
    "the number of an object": b"\x80\x04Nr\xff\xff\xff\x3f.",
    "a kind of array": pickle.dumps(policy(hidden_0={"kernel": np.zeros(3, "V1000"), "bias": np.zeros(1)})),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_would_take_much_memory_is_refused(tmp_path, name):
    (tmp_path / "policy").write_bytes(LARGE[name])
    with bounded(16), pytest.raises(UserError, match="policy .*expected a file that brax"):
        read_policy(tmp_path / "policy")


def test_a_file_changes_no_class(tmp_path):
    """A pickle may set attributes of what it names."""
    state = (
        b"\x80\x04cbrax.training.acme.running_statistics\nRunningStatisticsState\nN}X\x04\x00\x00\x00meanK\x05s\x86b."
    )
    assert [op.name for op, *_ in pickletools.genops(state)][-2:] == ["BUILD", "STOP"]
    (tmp_path / "policy").write_bytes(state)
    with pytest.raises(UserError):
        read_policy(tmp_path / "policy")
    assert not hasattr(Statistics, "mean")


def test_statistics_without_a_mean(tmp_path):
    """Of Brax's class, whose attributes the file has to bring."""
    statistics = b"cbrax.training.acme.running_statistics\nRunningStatisticsState\n)\x81"
    data = b"\x80\x04" + statistics + WHOLE.split(b"N", 1)[1]
    (tmp_path / "policy").write_bytes(data)
    with pytest.raises(UserError, match="has no mean and std"):
        read_policy(tmp_path / "policy")
