"""User-defined MJX robots: physics and reward equal MuJoCo's, and a run keeps its model."""

import numpy as np
import pytest

import neuroevo
from neuroevo.analysis.transfer import transfer
from neuroevo.analysis.web_page import write_page
from neuroevo.config.load import make_config
from neuroevo.config.schema import Env
from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.problems import ConfigError
from neuroevo.native.weights import NativeWeights
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.sessions.folder import RunFolder

CRAWLER = """
<mujoco model="crawler">
  <option timestep="0.01" iterations="4" ls_iterations="6"/>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body name="trunk" pos="0 0 0.3">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <joint name="pitch" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="-0.2 0 0 0.2 0 0" size="0.05" contype="0" conaffinity="0"/>
      <body name="leg" pos="0.2 0 0">
        <joint name="hip" type="hinge" axis="0 1 0" range="-60 60" limited="true" damping="0.5"/>
        <geom type="sphere" pos="0 0 -0.25" size="0.04"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="hip" gear="5" ctrlrange="-1 3" ctrllimited="true"/></actuator>
  <sensor>
    <jointpos name="angle" joint="pitch"/>
    <jointvel name="spin" joint="pitch"/>
    <framepos name="place" objtype="body" objname="leg"/>
  </sensor>
</mujoco>
"""
OPTIONS = {
    "frame_skip": 2,
    "healthy_z_range": [0.135, float("inf")],
    "sensor_reward_weights": {"spin": -0.1, "angle": 0.5},
    "ctrl_cost_weight": 0.01,
    "max_episode_steps": 40,
    "lanes": 3,  # of fewer than 4 no half is compiled, which takes as long again; test_lanes has one
}
WEIGHTS = {0: 0.5, 1: -0.1}  # by the sensors' places


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    pytest.importorskip("brax")
    path = tmp_path_factory.mktemp("model") / "crawler.xml"
    path.write_text(CRAWLER)
    return path


def config(model, **options):
    return make_config(
        {
            "env": {"name": f"mjx:{model}", "options": {**OPTIONS, **options}},
            "network": {"name": "mlp", "hidden": [4]},
            "algorithm": {"name": "es", "population": 12, "sigma": 0.3},
            "training": {"generations": 2, "test_episodes": 3},
        }
    )


def played_by_mujoco(path, theta, start, limit):
    """Return and steps of an episode, by MuJoCo itself in float64."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = start.qpos, start.qvel
    mujoco.mj_forward(model, data)
    total = 0.0
    for step in range(1, limit + 1):
        seen = np.concatenate([data.qpos[1:], data.qvel])  # all but the place along x
        hidden = np.tanh(seen @ theta[:28].reshape(7, 4) + theta[28:32])
        action = np.tanh(hidden @ theta[32:36] + theta[36])
        data.ctrl[:] = 1 + 2 * action  # from -1 to 3
        before = data.xpos[1, 0]
        mujoco.mj_step(model, data, 2)
        total += (data.xpos[1, 0] - before) / 0.02 + 1 - 0.01 * data.ctrl[0] ** 2
        total += sum(weight * data.sensordata[place] for place, weight in WEIGHTS.items())
        if data.xpos[1, 2] < 0.135:
            return total, step
    return total, limit


@pytest.mark.slow
def test_episodes_are_those_of_mujoco(model):
    from neuroevo.accelerated.start import make_simulator

    made = config(model)
    asked = [Episode(Genome(seed), 100 + seed, 5 if seed % 3 == 0 else 0) for seed in range(12)]
    with make_evaluator(made) as evaluator:
        outcomes = evaluator.evaluate(asked)
        thetas = [NativeWeights(evaluator.network_texts).theta(each.genome) for each in asked]
    reset = make_simulator(made.environment).reset
    for index, (episode, theta) in enumerate(zip(asked, thetas, strict=True)):
        start = reset(np.array(divmod(episode.seed, 2**32), np.uint32)).pipeline_state
        expected = played_by_mujoco(model, theta.astype(np.float64), start, episode.max_steps or 40)
        assert (outcomes.returns[index], outcomes.steps[index]) == (pytest.approx(expected[0], rel=1e-3), expected[1])
    assert len(set(outcomes.steps)) > 3 and (outcomes.steps == 5).any()


@pytest.fixture(scope="module")
def trained(model):
    """A run whose model's path is relative to where it was started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(model.parent)
        return neuroevo.train(config(model.name), out=model.parent / "run")


def test_a_run_is_replayed_and_shown(trained, tmp_path):
    reader, page = neuroevo.open_run(trained.path), tmp_path / "elite.html"
    again = neuroevo.evaluate(trained.path, episodes=3)
    made = write_page(reader.config, reader.elite()[1], again.seeds, page, max_episode_steps=0)
    np.testing.assert_array_equal(made.outcomes.returns, again.outcomes.returns)
    assert made.frames == again.steps + 3
    assert "var system" in page.read_text()


def test_a_model_that_changed_is_another(tmp_path, monkeypatch):
    from neuroevo.accelerated.start import make_simulator

    own = tmp_path / "own.xml"
    masses = []
    for size in ("0.05", "0.06"):
        own.write_text(CRAWLER.replace('size="0.05"', f'size="{size}"'))
        simulator = make_simulator(config(own).environment)
        monkeypatch.chdir(tmp_path)
        assert make_simulator(config(own.name).environment) is simulator
        masses.append(float(simulator.environment.sys.mj_model.body_mass[1]))
    assert masses[0] < masses[1]


def test_a_run_keeps_to_its_model(model, trained):
    model.write_text(CRAWLER.replace('gear="5"', 'gear="6"'))
    with pytest.raises(ConfigError) as caught:
        RunFolder.resume(trained.path)
    model.write_text(CRAWLER)
    assert [each.key for each in caught.value.problems] == ["env.options.xml_file"]


@pytest.mark.parametrize(
    ("options", "key", "said"),
    [
        ({"main_body": "trunc"}, "env.options.main_body", "did you mean trunk"),
        ({"sensor_reward_weights": {"height": 1.0}}, "env.options.sensor_reward_weights", "angle, spin, place"),
        ({"sensor_reward_weights": {"place": 1.0}}, "env.options.sensor_reward_weights", "has 3 values"),
        ({"excluded_positions": 5}, "env.options.excluded_positions", "at most 4"),
    ],
)
def test_what_the_model_lacks_is_named(model, options, key, said):
    with pytest.raises(ConfigError) as caught:
        make_evaluator(config(model, **options))
    (problem,) = caught.value.problems
    assert problem.key == key and said in problem.reason


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"sensor_reward_weights": {"angle": "1"}}, "env.options.sensor_reward_weights"),
        ({"sensor_reward_weights": [1.0]}, "env.options.sensor_reward_weights"),
        ({"healthy_z_range": [1.0, 0.0]}, "env.options.healthy_z_range"),
        ({"xml_file": "crawler.xml"}, "env.options.xml_file"),
        ({"lanes": 9, "devices": 2}, "env.options.lanes"),
    ],
)
def test_mistakes_in_options(model, options, key):
    with pytest.raises(ConfigError) as caught:
        config(model, **options)
    assert [each.key.rsplit("[", 1)[0] for each in caught.value.problems] == [key]


def test_models_that_cannot_be_used(tmp_path):
    with pytest.raises(ConfigError) as caught:
        config(tmp_path / "nowhere.xml")
    assert [each.key for each in caught.value.problems] == ["env.name"]
    for text, said in (
        ("<mujoco>", "XML"),
        (CRAWLER.replace("<actuator>", "<!--").replace("</actuator>", "-->"), "no actuators"),
        (CRAWLER.replace('timestep="0.01"', 'timestep="0.01" integrator="implicit"'), "IMPLICIT"),
    ):
        path = tmp_path / f"{abs(hash(text))}.xml"
        path.write_text(text)
        with pytest.raises(UserError, match=said) as refused:
            make_evaluator(config(path))
        assert str(path) in str(refused.value)


def test_another_model_with_as_many_numbers_may_be_played(trained, tmp_path):
    (tmp_path / "other.xml").write_text(CRAWLER)
    _, elite = trained.elite()
    there = transfer(trained.config, elite, Env(f"mjx:{tmp_path / 'other.xml'}", OPTIONS))
    there.evaluator.close()
    assert there.elite is elite and there.note == "an observation has 7 numbers there, as in the run"
