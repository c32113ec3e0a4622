"""MuJoCo Playground's tasks: episodes are those that Playground plays by itself."""

import numpy as np
import pytest

import neuroevo
from neuroevo.analysis.web_page import write_page
from neuroevo.config.load import make_config
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.core.problems import ConfigError
from neuroevo.native.weights import NativeWeights
from neuroevo.sessions.evaluators import make_evaluator

pytest.importorskip("mujoco_playground")
TASK = "CartpoleBalance"
STEPS = 25


def config(task=TASK):
    return make_config(
        {
            "env": {"name": f"playground:{task}", "options": {"max_episode_steps": STEPS, "lanes": 3}},
            "network": {"name": "mlp", "hidden": [4]},
            "algorithm": {"name": "es", "population": 4, "sigma": 0.3},
            "training": {"generations": 2, "test_episodes": 2},
        }
    )


def test_episodes_are_those_of_playground():
    import jax
    from mujoco_playground import registry

    asked = [Episode(Genome(seed), 100 + seed, 7 if seed == 1 else 0) for seed in range(5)]
    with make_evaluator(config()) as evaluator:
        outcomes = evaluator.evaluate(asked)
        thetas = [NativeWeights(evaluator.network_texts).theta(each.genome).astype(float) for each in asked]
    task = registry.load(TASK, config_overrides={"impl": "jax"})
    reset, step = jax.jit(task.reset), jax.jit(task.step)
    for index, (episode, theta) in enumerate(zip(asked, thetas, strict=True)):
        state, total = reset(np.array(divmod(episode.seed, 2**32), np.uint32)), 0.0
        for _ in range(episode.max_steps or STEPS):
            hidden = np.tanh(np.asarray(state.obs) @ theta[:20].reshape(5, 4) + theta[20:24])
            state = step(state, np.tanh(hidden @ theta[24:28] + theta[28:]).astype(np.float32))
            total += float(state.reward)
        assert outcomes.returns[index] == pytest.approx(total, rel=1e-4)
        assert outcomes.steps[index] == (episode.max_steps or STEPS)
    assert len({round(value, 3) for value in outcomes.returns}) > 3


def test_a_run_is_replayed_and_shown(tmp_path):
    run = neuroevo.train(config(), out=tmp_path / "run")
    _, elite = run.elite()
    again = neuroevo.evaluate(run.path, episodes=3)
    page = tmp_path / "elite.html"
    made = write_page(run.config, elite, again.seeds, page, max_episode_steps=0)
    np.testing.assert_array_equal(made.outcomes.returns, again.outcomes.returns)
    assert made.frames == 3 * (STEPS + 1)
    assert "var system" in page.read_text()


def test_an_unknown_task_is_named_with_those_that_there_are():
    with pytest.raises(ConfigError) as raised:
        make_evaluator(config("CheetahRunn"))
    (problem,) = raised.value.problems
    assert problem.key == "env.name"
    assert "did you mean CheetahRun?" in problem.reason and "HopperHop" in problem.reason
