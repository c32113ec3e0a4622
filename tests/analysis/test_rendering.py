"""`neuroevo render`: decoded videos against the environment's frames, returns against other runners, and errors."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neuroevo.analysis.evaluation import episode_seeds
from neuroevo.analysis.rendering import Agent, choose_agents, render
from neuroevo.analysis.replay import Replay
from neuroevo.analysis.video.tiles import Tiles
from neuroevo.cli import app
from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import held_out_seeds
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.networks import architectures
from neuroevo.runs.reader import RunReader
from tests.analysis.test_video import decode, fps_of
from tests.support.native_rollout import run_episodes
from tests.support.runs import config, new_run
from tests.support.toy import ToyEvaluator

ROOT = Path(__file__).parents[2]
FROSTBITE = registry.resolve("frostbite")


def made(path, **changes):
    """Make a run of five generations with the last three states; a toy evaluator makes the genomes arbitrary."""
    new_run(path, algorithm={"sigma": 0.005, "population": 12}, **changes)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return made(tmp_path_factory.mktemp("runs") / "run")


def command(*arguments):
    return CliRunner().invoke(app, ["render", *map(str, arguments)])


def video_of(*arguments, out):
    """Run the command; return its output and the video's frames."""
    result = command(*arguments, "--out", out)
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines(), decode(out)


def screens_of(genome, seed, max_episode_steps):
    """Play Frostbite in a separate environment; return the screens, uint8 [steps + 1, 210, 160, 3]."""
    pool = EnvPool(FROSTBITE, 1)
    text = architectures.to_text(
        architectures.model(architectures.input_line("uint8", pool.observation_shape), pool.num_actions)
    )
    population = Population([text], 1)
    population.init([0], [0], [genome.root])
    for noise, scale, _ in genome.mutations:
        population.perturb([0], [0], [noise], [scale])
    pool.reset([0], [seed], [max_episode_steps * pool.frame_skip])
    screens, done = [pool.render([0])[0]], False
    while not done:
        action = population.forward([0], pool.observe([0]), pool.num_actions).argmax()
        _, (done,) = pool.step([0], [action])
        screens.append(pool.render([0])[0])
    return np.stack(screens)


def outcome_of(genome, seed, max_episode_steps):
    """Play an episode with the lane runner; return its return and steps."""
    outcomes = run_episodes(
        FROSTBITE, [architectures.model], [Episode(genome, seed, max_episode_steps)], lanes=1, slots=1
    )
    return float(outcomes.returns[0]), int(outcomes.steps[0])


@pytest.mark.parametrize(("suffix", "scale"), [(".gif", 1), (".gif", 3), (".mp4", 2)])
def test_the_video_shows_the_game(path, tmp_path, suffix, scale):
    out = tmp_path / f"elite{suffix}"
    lines, pictures = video_of(path, "--max-episode-steps", 15, "--scale", scale, out=out)
    screens = screens_of(RunReader(path).elite()[1].genome, held_out_seeds(1)[0], 15)
    grid = Tiles(1, 210, 160, scale)
    assert pictures.shape == (16, *grid.shape)
    found = np.stack([picture[grid.place(0)] for picture in pictures])
    expected = screens.repeat(scale, axis=1).repeat(scale, axis=2)
    difference = np.abs(found.astype(int) - expected)
    if suffix == ".gif":
        assert difference.max() == 0
    else:
        assert difference.mean() < 1.5 and np.percentile(difference, 99) < 20
    # The video is not gray: most of the screen is sea and sky, which are blue in the video as in the emulator.
    for frames in (found, expected):
        red, _, blue = frames[-1].reshape(-1, 3).astype(int).T
        assert (blue - red > 80).mean() > 0.3
    assert len({picture.tobytes() for picture in found[::5]}) > 1
    assert fps_of(out) == pytest.approx(15, rel=0.02)
    height, width, _ = grid.shape
    assert lines[-1] == f"wrote {out}: generation 4 on frostbite, 16 frames of {width}x{height}, 15 per second"


def test_episodes_one_after_another_return_what_evaluate_says(path, tmp_path):
    options = ["--generation", 1, "--episodes", 3, "--seed", 5, "--max-episode-steps", 80]
    lines, pictures = video_of(path, *options, "--fps", 25, "--no-captions", out=tmp_path / "a.gif")
    genome = RunReader(path).elite(1)[1].genome
    seeds = episode_seeds(3, 5)
    outcomes = [outcome_of(genome, seed, 80) for seed in seeds]
    assert lines[:-1] == [
        f"episode {number}, elite: return {value:,.1f} in {steps:,} steps"
        for number, (value, steps) in enumerate(outcomes, start=1)
    ]
    expected = np.concatenate([screens_of(genome, seed, 80) for seed in seeds])
    assert np.array_equal(pictures[:, ::2, ::2], expected)
    assert fps_of(tmp_path / "a.gif") == pytest.approx(25)
    evaluated = CliRunner().invoke(app, ["evaluate", str(path), *map(str, options), "--json"])
    assert f'"returns": {[value for value, _ in outcomes]}' in evaluated.stdout


def test_members_side_by_side(path, tmp_path):
    reader, max_episode_steps = RunReader(path), 250
    lines, pictures = video_of(
        path,
        "--members",
        5,
        "--generation",
        3,
        "--max-episode-steps",
        max_episode_steps,
        "--scale",
        1,
        out=tmp_path / "a.gif",
    )
    # The elite, then other members by descending fitness.
    genomes = reader.config.algorithm.ask(reader.state(3).algorithm, None)
    fitness = np.array(reader.rows()[3]["fitness"])
    elite = reader.elite(3)[1].genome
    ranked = [genomes[i] for i in sorted(range(len(genomes)), key=lambda i: (-fitness[i], i))]
    shown = [elite, *[genome for genome in ranked if genome != elite][:4]]
    names = ["elite", *[f"#{rank}" for rank, genome in enumerate(ranked, start=1) if genome != elite][:4]]
    seed = held_out_seeds(1)[0]
    outcomes = [outcome_of(genome, seed, max_episode_steps) for genome in shown]
    assert lines[:-1] == [
        f"episode 1, {name}: return {value:,.1f} in {steps:,} steps"
        for name, (value, steps) in zip(names, outcomes, strict=True)
    ]
    steps = [steps for _, steps in outcomes]
    assert len(set(steps)) > 1  # some episodes end earlier
    grid = Tiles(5, 210, 160, 1)
    assert pictures.shape == (max(steps) + 1, *grid.shape)
    for tile, genome in enumerate(shown):
        screens = screens_of(genome, seed, max_episode_steps)
        assert len(screens) == steps[tile] + 1
        for step, picture in enumerate(pictures):
            expected = screens[min(step, steps[tile])]
            if steps[tile] <= step < max(steps):
                expected = expected // 2
            assert np.array_equal(picture[grid.place(tile)], expected), (tile, step)


def test_members_that_are_not_kept_need_their_state(path, tmp_path):
    forgetful = made(tmp_path / "run", logging={"members_megabytes": 0})
    result = command(forgetful, "--out", tmp_path / "a.gif", "--members", 2, "--generation", 1)
    assert result.exit_code == 2
    assert result.stderr == (
        "neuroevo: the members of generation 1 are no longer available, since the state before it is deleted; "
        "expected one of these generations: 3, 4 (see keep_last and keep_every of [checkpoints])\n"
    )
    reader = RunReader(forgetful)
    assert choose_agents(reader, 1, 1)[1][0].genome == reader.elite(1)[1].genome  # a single elite needs no state
    assert choose_agents(RunReader(path), 4, 12) == choose_agents(reader, 4, 12)
    others = [agent.genome for agent in choose_agents(reader, 4, 12)[1][1:]]
    assert len(set(others)) == 11 and reader.elite(4)[1].genome not in others
    most = 12 if reader.elite(4)[1].genome in reader.config.algorithm.ask(reader.state(4).algorithm, None) else 13
    assert len(choose_agents(reader, 4, most)[1]) == most
    with pytest.raises(UserError, match=f"members is {most + 1}, .* {most} in generation 4"):
        choose_agents(reader, 4, most + 1)


@pytest.mark.parametrize(("sent", "suffix"), [("SIGINT", ".gif"), ("SIGTERM", ".mp4")])
def test_signals_leave_no_half_video(path, tmp_path, sent, suffix):
    out = tmp_path / f"a{suffix}"
    process = subprocess.Popen(
        [sys.executable, "-m", "neuroevo", "render", path, "--out", out, "--episodes", "5000",
         "--max-episode-steps", "0"],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    while not list(tmp_path.iterdir()):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(getattr(signal, sent))
    stdout, stderr = process.communicate(timeout=60)
    code, word = {"SIGINT": (130, "interrupted"), "SIGTERM": (143, "terminated")}[sent]
    assert (process.returncode, stdout, stderr) == (code, "", f"neuroevo: {word}\n")
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_replaced_only_by_force(path, tmp_path):
    out = tmp_path / "a.mp4"
    out.write_text("a film")
    result = command(path, "--out", out, "--max-episode-steps", 3)
    assert result.exit_code == 2
    assert result.stderr == f"neuroevo: {out} exists already; pass --force to replace it, or --out for another name\n"
    assert out.read_text() == "a film"
    result = command(path, "--out", out, "--max-episode-steps", 3, "--force")
    assert result.exit_code == 0, result.stderr
    assert len(decode(out)) == 4
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent", "--out", "a.gif"], "there is no run in absent"),
        (["RUN", "--out", "a.avi"], "a.avi ends in '.avi', expected a name that ends in .mp4 or .gif"),
        (["RUN", "--out", "absent/a.gif"], "cannot write absent/a.gif: there is no folder absent"),
        (["RUN", "--out", "a.gif", "--generation", "5"], r"expected one in \[0, 4\]"),
        (["RUN", "--out", "a.gif", "--members", "0"], "Invalid value for '--members'"),
        (["RUN", "--out", "a.gif", "--members", "99"], "members is 99, expected at most 1[23] in generation 4"),
        (["RUN", "--out", "a.gif", "--episodes", "0"], "Invalid value for '--episodes'"),
        (["RUN", "--out", "a.gif", "--scale", "0"], "Invalid value for '--scale'"),
        (["RUN", "--out", "a.gif", "--fps", "0"], "Invalid value for '--fps'"),
        (["RUN", "--out", "a.gif", "--max-episode-steps", "-1"], "Invalid value for '--max-episode-steps'"),
    ],
)
def test_mistakes(path, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = command(*(path if argument == "RUN" else argument for argument in arguments))
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert "Traceback" not in result.stderr and result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_gymnasiums_environments_are_made_with_screens(tmp_path):
    """The run was made without screens; the toy's screen is its observation, upside down."""
    name, genome = "gymnasium:tests.support.gymnasium_toys:ToyImage-v0", Genome(3)
    toy = config(env={"name": name, "options": {"workers": 1}}, network={"name": "mlp", "hidden": [4]})
    rendered = render(
        toy, [Agent("elite", genome)], [5], tmp_path / "a.gif", max_episode_steps=3, scale=1, captions=False
    )
    assert "render_mode" not in str(toy.env.options)
    replay = Replay(toy, [genome])
    returns, seen = zip(
        *((now.returns[0], replay.pool.observe([0])[0, ::-1]) for now in replay.play(5, 3)), strict=True
    )
    assert (rendered.outcomes[0].returns[0], rendered.frames) == (returns[-1], 4)
    place = Tiles(1, 4, 5, 1, False).place(0)
    assert np.array_equal([picture[place] for picture in decode(tmp_path / "a.gif")], seen)


@pytest.mark.parametrize(("fps", "expected"), [(50, 50), (None, 30), (1e6, 30), ("fast", 30)])
def test_an_environment_of_gymnasium_plays_at_its_own_speed(tmp_path, fps, expected):
    """One frame per step, at the rate in the environment's metadata or otherwise Gymnasium's default."""
    name, out = "gymnasium:tests.support.gymnasium_toys:ToyImage-v0", tmp_path / "a.mp4"
    options = {"workers": 1, "kwargs": {"fps": fps}}
    toy = config(env={"name": name, "options": options}, network={"name": "mlp", "hidden": [4]})
    rendered = render(toy, [Agent("elite", Genome(3))], [5], out, max_episode_steps=3, captions=False)
    assert (rendered.fps, rendered.frames, fps_of(out)) == (expected, 4, expected)
    if fps == 50:
        chosen = render(toy, [Agent("elite", Genome(3))], [5], out, max_episode_steps=3, captions=False, fps=20.0)
        assert (chosen.fps, fps_of(out)) == (20, 20)


def test_an_environment_of_gymnasium_without_screens(tmp_path):
    toy = config(
        env={"name": "gymnasium:tests.support.gymnasium_toys:ToyDict-v0"}, network={"name": "mlp", "hidden": [4]}
    )
    with pytest.raises(UserError, match=r"^env.name: gymnasium:\S+ .*'render_mode'"):
        render(toy, [Agent("elite", Genome(3))], [5], tmp_path / "a.gif", max_episode_steps=3)
    assert list(tmp_path.iterdir()) == []


def test_a_mode_of_rendering_that_was_asked_for_stays():
    options = {"kwargs": {"render_mode": "ansi", "g": 9.0}, "workers": 2}
    for name, given in (("gymnasium:CartPole-v1", options), ("frostbite", {"mode": 1})):
        environment = registry.find(name, given)
        assert environment.rendered() is environment
    assert registry.find("gymnasium:CartPole-v1").rendered().options.kwargs == {"render_mode": "rgb_array"}


def test_failures_are_told(tmp_path):
    agents = [Agent("good", Genome(1)), Agent("bad", Genome(0).child(1, 3e38))]
    maze = config(env={"name": "hard_maze"}, network={"name": "mlp", "hidden": [4]})
    rendered = render(maze, agents, [5, 6], tmp_path / "a.mp4", max_episode_steps=10, scale=1)
    for outcomes in rendered.outcomes:
        assert outcomes.steps.tolist() == [10, 1]
        assert outcomes.failures == {1: "action[0] is nan, expected a finite number"}


def test_no_ffmpeg(path, tmp_path, monkeypatch):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nowhere/ffmpeg")
    result = command(path, "--out", tmp_path / "a.gif")
    assert result.exit_code == 2
    assert "videos require ffmpeg, and no working one was found" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_finished_generation(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        new_run(tmp_path / "run", ToyEvaluator(interrupt_at=0))
    result = command(tmp_path / "run", "--out", tmp_path / "a.gif", "--members", 2)
    assert result.exit_code == 2
    assert result.stderr == f"neuroevo: no generation of the run in {tmp_path / 'run'} is finished yet\n"


def test_a_video_without_a_name_is_in_the_run_s_folder(tmp_path):
    run = made(tmp_path / "run")
    done = command(run, "--max-episode-steps", 3)
    assert done.exit_code == 0, done.stderr
    video = run / "elite-000004.mp4"
    assert f"wrote {video}: " in done.stdout and len(decode(video)) == 4
