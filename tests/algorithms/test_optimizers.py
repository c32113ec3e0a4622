"""Adam and SGD, compared with hand-computed numbers, float64 NumPy and Keras, which has the same variants of both."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from neuroevo.algorithms.optimizers import SGD, Adam, Optimizer, OptimizerState
from neuroevo.core.state_codec import decode, encode


def run(optimizer, gradients):
    """Return the successive steps for the gradients [T, D], float32 [T, D]."""
    state, changes = optimizer.init(gradients.shape[1]), []
    for gradient in gradients:
        change, state = optimizer.step(state, gradient)
        changes.append(change)
    return np.array(changes)


def test_adam_by_hand():
    changes = run(Adam(learning_rate=0.1), np.array([[1.0], [-3.0]], np.float32))
    # m = 0.1, v = 0.001, a = 0.1 sqrt(0.001) / 0.1: -a 0.1 / sqrt(0.001) = -0.1.
    # m = 0.09 - 0.3 = -0.21, v = 0.000999 + 0.009 = 0.009999, a = 0.1 sqrt(0.001999) / 0.19 = 0.02353167:
    # 0.02353167 * 0.21 / 0.099995 = 0.04941898.
    assert changes[:, 0] == pytest.approx([-0.1, 0.04941898], rel=1e-6)


def test_epsilon_is_added_to_the_root_that_is_not_corrected():
    # v = 0.001 * 4e-4, its root 6.3246e-4; m = 0.002; a = 0.1 sqrt(0.001) / 0.1 = 0.0316228: -a m / (root + 1e-3).
    # Algorithm 1 would add epsilon to the corrected root 0.02, and give -0.1 * 0.02 / 0.021 = -0.0952.
    change, _ = Adam(learning_rate=0.1, epsilon=1e-3).step(Adam().init(1), np.array([0.02], np.float32))
    assert change[0] == pytest.approx(-0.0316228 * 0.002 / 1.63246e-3, rel=1e-5)


def test_sgd_by_hand():
    # Velocities 2, 0.5 * 2 - 1 = 0, 0 + 4; each times -0.25.
    assert run(SGD(learning_rate=0.25, momentum=0.5), np.array([[2.0], [-1.0], [4.0]]))[:, 0].tolist() == [
        -0.5,
        0.0,
        -1.0,
    ]
    assert run(SGD(learning_rate=0.5, momentum=0), np.array([[2.0], [-1.0]]))[:, 0].tolist() == [-1.0, 0.5]


def adam64(optimizer, gradients):
    m = v = 0.0
    for t, g in enumerate(gradients.astype(np.float64), 1):
        m = optimizer.beta1 * m + (1 - optimizer.beta1) * g
        v = optimizer.beta2 * v + (1 - optimizer.beta2) * g * g
        corrected = optimizer.learning_rate * np.sqrt(1 - optimizer.beta2**t) / (1 - optimizer.beta1**t)
        yield -corrected * m / (np.sqrt(v) + optimizer.epsilon)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-5, 1), st.floats(0, 0.99), st.floats(0, 0.9999), st.integers(0, 2**32))
def test_adam_is_float64s_to_rounding(learning_rate, beta1, beta2, seed):
    optimizer = Adam(learning_rate=learning_rate, beta1=beta1, beta2=beta2)
    gradients = np.random.default_rng(seed).standard_normal((40, 9)).astype(np.float32)
    changes = run(optimizer, gradients)
    assert changes.dtype == np.float32
    # 1 - beta2 is rounded to float32, which affects the root of a small v.
    np.testing.assert_allclose(changes, list(adam64(optimizer, gradients)), rtol=1e-4, atol=1e-5 * learning_rate)


@pytest.mark.parametrize(
    ("own", "keras"),
    [
        (Adam(learning_rate=0.01), lambda: tf.keras.optimizers.Adam(0.01, 0.9, 0.999, 1e-8)),
        (SGD(learning_rate=0.01, momentum=0.9), lambda: tf.keras.optimizers.SGD(0.01, 0.9)),
    ],
)
def test_keras_goes_the_same_way(own, keras):
    gradients = np.random.default_rng(4).standard_normal((30, 100)).astype(np.float32)
    theta, optimizer = tf.Variable(tf.zeros(100)), keras()
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), theta)])
    np.testing.assert_allclose(run(own, gradients).sum(0), theta.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer", [Adam(learning_rate=0.05), SGD(learning_rate=0.05, momentum=0.9)])
def test_steps_go_downhill(optimizer):
    """Steps reach the minimum of a parabola without modifying theta in place."""
    target = np.array([1.0, -2.0, 0.5], np.float32)
    theta, state = np.zeros(3, np.float32), optimizer.init(3)
    for _ in range(600):
        change, state = optimizer.step(state, theta - target)
        theta = theta + change
    assert theta == pytest.approx(target, abs=0.01)
    assert state.steps == 600


@pytest.mark.parametrize("optimizer", [Adam(learning_rate=0.05), SGD(learning_rate=0.05)])
def test_a_state_is_not_changed_by_a_step_and_survives_a_checkpoint(optimizer):
    gradients = np.random.default_rng(5).standard_normal((6, 50)).astype(np.float32)
    state = optimizer.init(50)
    for gradient in gradients[:3]:
        _, state = optimizer.step(state, gradient)
    before = [moment.copy() for moment in state.moments]
    expected = [optimizer.step(state, gradient)[0].tobytes() for gradient in gradients]
    assert all(np.array_equal(a, b) for a, b in zip(before, state.moments, strict=True))
    (again,) = decode(encode(state), OptimizerState)
    assert again.steps == 3
    assert [optimizer.step(again, gradient)[0].tobytes() for gradient in gradients] == expected


def test_a_zero_gradient_moves_nothing_at_first():
    for optimizer in (Adam(), SGD(learning_rate=1.0)):
        change, _ = optimizer.step(optimizer.init(4), np.zeros(4))
        assert not change.any()


@pytest.mark.parametrize("optimizer", [Adam(), SGD(learning_rate=1.0)])
def test_bad_gradients_are_named(optimizer):
    state = optimizer.init(3)
    with pytest.raises(ValueError, match=r"\[2\], expected \[3\]"):
        optimizer.step(state, np.zeros(2))
    with pytest.raises(ValueError, match="gradient 1 is nan"):
        optimizer.step(state, np.array([0, np.nan, 0]))
    with pytest.raises(ValueError, match=r"gradient 2 is 1e\+39"):
        optimizer.step(state, np.array([0, 0, 1e39]))


def test_as_settings():
    read = TypeAdapter(Optimizer).validate_python
    assert read({"type": "adam", "learning_rate": 0.02}) == Adam(learning_rate=0.02)
    assert read({"learning_rate": 0.02}) == read(Adam(learning_rate=0.02)) == Adam(learning_rate=0.02)
    assert read({"type": "sgd", "learning_rate": 1, "momentum": 0.5}) == SGD(learning_rate=1.0, momentum=0.5)
    assert dataclasses.asdict(Adam()) == {
        "learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "type": "adam"
    }  # fmt: skip
    for wrong in (
        "adam",
        {"type": "lbfgs"},
        {"type": "sgd"},
        {"type": "adam", "learning_rate": 0.0},
        {"type": "adam", "beta1": 1.0},
        {"type": "sgd", "learning_rate": 0.1, "momentum": -0.1},
        {"type": "adam", "momentum": 0.9},
    ):
        with pytest.raises(ValidationError):
            read(wrong)
