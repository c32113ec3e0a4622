"""run.policy(), run.weights() and run.export(): use of an elite outside of neuroevo."""

import numpy as np
import pytest

import neuroevo
from neuroevo.core.errors import UserError
from neuroevo.native.weights import NativeWeights

HOPPER = {"env": {"name": "Hopper-v5"}, "network": {"name": "mlp", "hidden": [8]}}
ES = {"name": "es", "population": 8, "sigma": 0.05}
GA = {"name": "ga", "population": 6, "parents": 2, "sigma": 0.05, "validation_candidates": 2}
PLAYERS = {
    "normalized": {**HOPPER, "network": {**HOPPER["network"], "normalize_observations": True}, "algorithm": ES},
    "low rank": {**HOPPER, "algorithm": {**ES, "name": "low_rank_es"}},
    "recurrent": {**HOPPER, "network": {"layers": ["lstm 6"]}, "algorithm": GA},
    "bins": {**HOPPER, "network": {"name": "mlp", "hidden": [8], "action_bins": 3}, "algorithm": GA},
    "integers": {"env": {"name": "ms_pacman"}, "network": {"name": "model", "dtype": "int8"}, "algorithm": GA},
    "vbn": {"env": {"name": "ms_pacman"}, "network": {"name": "virtual_bn"}, "algorithm": ES},
}
STEPS = 120


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Function that returns the run of an entry of PLAYERS, which is trained once."""
    made = {}

    def run(player):
        if player not in made:
            training = {"generations": 2, "max_episode_steps": STEPS, "validation_episodes": 2, "test_episodes": 0}
            tables = {**PLAYERS[player], "training": training, "logging": {"trackers": []}}
            made[player] = neuroevo.train(tables, out=tmp_path_factory.mktemp("runs") / "run")
        return made[player]

    return run


@pytest.mark.parametrize("player", PLAYERS)
def test_a_policy_plays_the_episodes_that_are_evaluated(player, runs):
    run = runs(player)
    evaluation, policy = run.evaluate(episodes=3, max_episode_steps=STEPS), run.policy()
    env = neuroevo.make_vec(run.config.env.name, 1, max_episode_steps=STEPS)
    returns = []
    for seed in evaluation.seeds:
        observations, _ = env.reset(seed=[int(seed)])
        policy.reset()
        total, over = 0.0, False
        while not over:
            action = policy(observations[0])
            assert action.shape == env.single_action_space.shape and action.dtype in (np.int32, np.float32)
            observations, rewards, terminated, truncated, _ = env.step(action[None])
            total, over = total + rewards[0], terminated[0] or truncated[0]
        returns.append(total)
    np.testing.assert_array_equal(returns, evaluation.outcomes.returns)
    assert len(set(returns)) > 1


def test_several_observations_at_once(runs):
    policy = runs("normalized").policy(0)
    seen = np.random.default_rng(0).normal(size=(5, *policy.observation_shape))
    np.testing.assert_array_equal(policy(seen), [policy(each) for each in seen])


def test_observations_that_do_not_fit(runs):
    with pytest.raises(ValueError, match=r"shape \[3\], expected \[11\]"):
        runs("normalized").policy()(np.zeros(3))
    with pytest.raises(ValueError, match="recurrent"):
        runs("recurrent").policy()(np.zeros((2, 11)))
    policy = runs("integers").policy()
    with pytest.raises(ValueError, match="dtype float64, expected uint8"):
        policy(np.zeros(policy.observation_shape))


def test_weights_and_exports(runs, tmp_path):
    run = runs("normalized")
    _, elite = run.elite(1)
    texts = [run.export(tmp_path / "elite.npz", 1).text]
    np.testing.assert_array_equal(run.weights(1), NativeWeights(texts).theta(elite.genome))
    arrays = np.load(tmp_path / "elite.npz")
    kernel = arrays["dense_1.kernel"]
    np.testing.assert_array_equal(kernel.reshape(-1), run.weights(1)[: kernel.size])
    with pytest.raises(UserError, match=r"elite\.onx.*\.keras"):
        run.export(tmp_path / "elite.onx")
    with pytest.raises(UserError, match="ends in .keras"):
        run.export(tmp_path / "elite.npz", format="keras")
