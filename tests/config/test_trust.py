"""Runs of other users require trust for external code, the user's own runs do not: docs/security.md."""

import pickle
import py_compile
import re
import shutil
import sys
import textwrap
from importlib.util import cache_from_source, find_spec
from pathlib import Path

import pytest

import neuroevo
from neuroevo.cluster.player import Player
from neuroevo.core import user_module
from neuroevo.core.errors import NotTrustedError
from neuroevo.inspector.inspection import Inspection
from neuroevo.runs.reader import RunReader
from neuroevo.sessions import evaluators
from neuroevo.sessions.folder import RunFolder
from neuroevo.sweeps.driver import run_sweep
from neuroevo.sweeps.study import Study
from neuroevo.sweeps.sweep import load_sweep
from tests.support.damage import forge

MODULE = """
    import os
    from pathlib import Path

    import numpy as np
    from neuroevo.algorithms.ask_tell import AskTell, Sampler
    from neuroevo.core.settings import settings

    with Path(os.environ["MARKER"]).open("a") as file:
        file.write("run\\n")

    class Climber(Sampler):
        def __init__(self, at, rng):
            self.at, self.rng = at, rng

        def ask(self):
            self.asked = self.at + 0.3 * self.rng.normal(size=(4, len(self.at)))
            return self.asked

        def tell(self, fitness, behaviors):
            self.at = self.asked[np.argmax(fitness)]

    @settings
    class Climbing(AskTell):
        pickled = False

        def start(self, theta, seed):
            return Climber(theta, np.random.default_rng(seed))

    def small(shape, outputs):
        return ["dense 5", "relu", f"dense {outputs}"]
"""
RUN = """
    [env]
    name = "HardMaze-v0"
    [network]
    name = "theirs:small"
    [algorithm]
    name = "theirs:Climbing"
    [hardware]
    threads = 1
    slots = 4
    [training]
    generations = 2
    max_episode_steps = 10
    validation_episodes = 2
    test_episodes = 2
"""
PLAIN = RUN.replace("theirs:small", "mlp").replace("theirs:Climbing", 'ga"\npopulation = 4\nparents = 2 #')
PLAY = ("--episodes", "2", "--max-episode-steps", "10")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


class Person:
    """User with a state folder, a working folder, and a file that shows whether a module of `theirs` was imported."""

    def __init__(self, home, command):
        self.command = command
        self.home, self.work, self.marker = home, home / "work", home / "marker"
        self.work.mkdir(parents=True)

    @property
    def variables(self):
        return {"XDG_STATE_HOME": str(self.home / "state"), "MARKER": str(self.marker)}

    def __call__(self, *words):
        return self.command(*words, folder=self.work, variables=self.variables, real=True)

    def has_run(self):
        """Whether the module was imported since the last call."""
        found = self.marker.exists()
        self.marker.unlink(missing_ok=True)
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory, toy_command):
    """Another user with a run that references their own modules."""
    stranger = Person(tmp_path_factory.mktemp("stranger"), toy_command)
    write(stranger.work / "theirs.py", MODULE)
    write(stranger.work / "run.toml", RUN)
    done = stranger("train", "run.toml", "--out", "run")
    assert done.returncode == 0, done.stderr
    assert stranger.has_run()
    return stranger


@pytest.fixture
def user(tmp_path, monkeypatch, toy_command):
    """The current user, also of this process."""
    person = Person(tmp_path / "user", toy_command)
    for name, value in person.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(person.work)
    path = list(sys.path)
    yield person
    sys.path[:] = path
    sys.modules.pop("theirs", None)


@pytest.fixture
def run(made, user):
    """The current user's copy of the other user's run."""
    return Path(shutil.copytree(made.work / "run", user.work / "got"))


@pytest.fixture
def own(made, user):
    """The same run, made by the current user with modules of the same content."""
    shutil.copy(made.work / "theirs.py", user.work)
    shutil.copy(made.work / "run.toml", user.work)
    done = user("train", "run.toml", "--out", "mine")
    assert done.returncode == 0, done.stderr
    assert user.has_run()
    return user.work / "mine"


def commands(run):
    """Each command that reads a run, with its other arguments."""
    write(run.parent / "starts.toml", PLAIN + f"    start_from = '{run}'\n")
    write(run.parent / "sweep.toml", f"[sweep]\nconfigs = '{run}/config.toml'\nout = '{run.parent}/sweep'\n")
    return [
        ("evaluate", run, *PLAY),
        ("render", run, "--out", "elite.gif", "--max-episode-steps", "5"),
        ("export", run, "--format", "npz"),
        ("plot", run),
        ("train", "--resume", run, "--set", "training.generations=3"),
        ("train", run / "config.toml", "--out", "again"),
        ("train", "starts.toml", "--out", "started"),
        ("config", "check", run / "config.toml"),
        ("config", "check", "starts.toml"),
        ("config", "show", run / "config.toml"),
        ("sweep", "sweep.toml"),
    ]


def went_on(words, done):
    """Whether a command succeeded, or failed only because the other network is incompatible."""
    if "starts.toml" in words:
        return done.returncode == 2 and "its network is theirs:small" in done.stderr
    return done.returncode == 0


def test_no_command_runs_what_a_stranger_s_run_names(user, run):
    for words in commands(run):
        done = user(*words)
        assert not user.has_run(), words
        assert done.returncode == 2, (words, done.stderr)
        assert "theirs" in done.stderr and "--trust" in done.stderr, words
        assert "was not begun on this machine" in done.stderr, (words, done.stderr)
    assert not (user.home / "state").exists()  # reading commands write no list


@pytest.mark.thorough
def test_every_command_runs_it_for_who_trusts_it(user, run):
    for words in commands(run):
        if words[0] == "sweep":  # trials are processes with separate configurations
            shutil.copy(run / "own" / "theirs.py", user.work)
        done = user(*words, "--trust")
        assert user.has_run(), words
        assert went_on(words, done), (words, done.stderr)
    (user.work / "theirs.py").unlink()
    assert user("evaluate", run, *PLAY).returncode == 0  # resumed here, so the run now belongs to this user


def test_the_api_asks_as_well(user, run):
    maze = {"name": "HardMaze-v0"}
    plain = neuroevo.make_config({"env": maze, "network": {"name": "mlp"}, "training": {"generations": 1}})
    starting = neuroevo.make_config(plain.tables(), {"training.start_from": str(run)})
    for ask in (
        lambda: neuroevo.open_run(run),
        lambda: RunReader(run),
        lambda: neuroevo.evaluate(run, episodes=1),
        lambda: neuroevo.load_config(run / "config.toml"),
        lambda: neuroevo.train(run / "config.toml", out="again"),
        lambda: neuroevo.train(plain, out=run, resume=True),
        lambda: RunFolder.resume(run),
        lambda: RunFolder.fork("fork", run),
        lambda: RunFolder.create("starting", starting),
    ):
        with pytest.raises(NotTrustedError, match="theirs"):
            ask()
        assert not user.has_run()
    trusted = neuroevo.open_run(run, trust=True)
    assert user.has_run() and trusted.evaluate(episodes=1, max_episode_steps=5).summary.n == 1
    assert neuroevo.load_config(run / "config.toml", trust=True).network.name == "theirs:small"


def test_who_made_a_run_is_asked_nothing(user, own):
    for words in commands(own):
        if words[0] in ("render", "sweep"):
            continue  # the slowest commands, which read runs as the others do
        done = user(*words)
        assert went_on(words, done), (words, done.stderr)
        assert user.has_run(), words
    (user.work / "theirs.py").unlink()  # from here on, only the run has the module
    assert user("evaluate", own, *PLAY).returncode == 0 and user.has_run()
    assert (user.home / "state" / "neuroevo" / "runs").stat().st_mode & 0o777 == 0o600


def set_config(run, text):
    """Change a run's configuration, in the database and in config.toml."""
    forge(run, "run", "id = 1", config=text)
    (run / "config.toml").write_text(text)


def edit(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_folder_from_elsewhere_is_another_run(user, own, made):
    """Also at the path of a run that was started here; copied and moved runs count as external, too."""
    moved = own.rename(user.work / "elsewhere")
    copied = Path(shutil.copytree(moved, user.work / "copied"))
    shutil.copytree(made.work / "run", own)
    for run in (own, moved, copied):
        done = user("evaluate", run, *PLAY)
        assert done.returncode == 2 and "was not begun on this machine" in done.stderr and not user.has_run()
    shutil.rmtree(own)
    moved.rename(own)
    assert user("evaluate", own, *PLAY).returncode == 0 and user.has_run()


def test_the_environment_may_trust_all(user, run):
    def evaluate(value):
        variables = {**user.variables, "NEUROEVO_TRUST": value}
        return user.command("evaluate", run, *PLAY, folder=user.work, variables=variables, real=True)

    done = evaluate("1")
    assert done.returncode == 0 and user.has_run(), done.stderr
    assert evaluate("0").returncode == 2 and not user.has_run()


def test_a_list_that_cannot_be_written_is_no_reason_to_fail(user, made):
    shutil.copy(made.work / "theirs.py", user.work)
    shutil.copy(made.work / "run.toml", user.work)
    (user.home / "state").write_text("no folder")
    done = user("train", "run.toml", "--out", "mine")
    assert done.returncode == 0, done.stderr
    assert "state/neuroevo/runs: Not a directory" in done.stderr and "--trust" in done.stderr
    refused = user("evaluate", "mine", *PLAY)
    assert refused.returncode == 2 and "--trust" in refused.stderr
    assert user("evaluate", "mine", *PLAY, "--trust").returncode == 0
    (user.home / "state").unlink()
    assert user("train", "--resume", "mine", "--set", "training.generations=3", "--trust").returncode == 0
    assert user("evaluate", "mine", *PLAY).returncode == 0  # a trusted run needs no further --trust


def test_runs_of_the_package_s_own_never_ask(user, made):
    write(made.work / "plain.toml", PLAIN)
    assert made("train", "plain.toml", "--out", "plain").returncode == 0
    got = Path(shutil.copytree(made.work / "plain", user.work / "got"))
    for words in (
        ("evaluate", got, *PLAY),
        ("plot", got),
        ("train", "--resume", got, "--set", "training.generations=3"),
    ):
        done = user(*words)
        assert done.returncode == 0, done.stderr
    assert not (user.home / "state").exists()


@pytest.mark.parametrize(
    ("plain", "named", "misspelt"),
    [  # a misspelt key is treated as the closest valid key
        (("theirs:small", "mlp"), "[algorithm]", "[algoritm]"),
        (("theirs:small", "mlp"), 'name = "theirs:Climbing"', 'nme = "theirs:Climbing"'),
        (("theirs:Climbing", "ga"), "[network]", "[netwrk]"),
        (("theirs:Climbing", "ga"), 'name = "theirs:small"', 'nam = "theirs:small"'),
    ],
)
def test_misspelling_what_is_named_is_no_way_around(user, run, plain, named, misspelt):
    edit(run / "config.toml", *plain)
    edit(run / "config.toml", named, misspelt)
    set_config(run, (run / "config.toml").read_text())
    shutil.copy(run / "own" / "theirs.py", user.work)  # where modules are searched
    for words in (("evaluate", run), ("train", "--resume", run), ("config", "check", run / "config.toml")):
        done = user(*words)
        assert done.returncode == 2 and not user.has_run(), (words, done.stderr)
    for path in run.iterdir():
        if path.name != "config.toml":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert user("evaluate", run).returncode == 2 and not user.has_run()


def test_a_mistake_on_the_command_line_is_no_way_around(user, run):
    shutil.copy(run / "own" / "theirs.py", user.work)
    for mistake in ("nothing", "algorithm.name.x=1", "training.generations=[", "training.generation=3"):
        done = user("train", "--resume", run, "--set", mistake)
        assert done.returncode == 2 and not user.has_run(), done.stderr


def test_a_module_of_another_folder_does_not_take_the_kept_one_s_place(user, own):
    """In another user's folder, commands import the run's copy of a module, not the other user's module."""
    strange = user.work.parent / "strange"
    write(strange / "theirs.py", 'raise SystemExit("a stranger\'s")')
    user.work = strange
    done = user("evaluate", own, *PLAY)
    assert done.returncode == 0 and user.has_run(), done.stderr
    done = user("train", "--resume", own, "--set", "training.generations=3")
    assert done.returncode == 0 and user.has_run(), done.stderr


def test_nor_does_its_package(user, made):
    """Module of the same content, in a package with another __init__."""
    write(user.work / "pack" / "theirs.py", MODULE)
    write(user.work / "run.toml", RUN.replace("theirs:", "pack.theirs:"))
    assert user("train", "run.toml", "--out", "mine").returncode == 0
    strange = user.work.parent / "strange"
    write(strange / "pack" / "theirs.py", MODULE)
    write(strange / "pack" / "__init__.py", 'raise SystemExit("a stranger\'s")')
    user.work, run = strange, user.work / "mine"
    done = user("evaluate", run, *PLAY)
    assert done.returncode == 0 and user.has_run(), done.stderr
    assert "pack" not in done.stderr  # no warning


def test_nothing_else_in_the_folder_is_imported(user, own):
    """Python does not search own/ for modules, and neither reads nor writes compiled code there."""
    (user.work / "theirs.py").unlink()
    write(own / "own" / "sideways.py", "")
    (own / "own" / "__pycache__").mkdir()
    compiled = Path(cache_from_source(str(own / "own" / "theirs.py")))
    py_compile.compile(str(write(user.work / "evil.py", "evil = 1")), str(compiled))
    before = compiled.read_bytes()
    neuroevo.open_run("mine")
    assert user.has_run() and not hasattr(sys.modules["theirs"], "evil")
    assert sys.modules["theirs"].__file__ == str(own / "own" / "theirs.py")
    assert find_spec("sideways") is None and not any("own" in Path(entry).parts for entry in sys.path)
    assert list(compiled.parent.iterdir()) == [compiled] and compiled.read_bytes() == before


def test_machines_of_a_cluster_get_kept_modules_from_the_driver(user, own):
    (user.work / "theirs.py").unlink()
    config = neuroevo.load_config(own / "config.toml")
    settings = evaluators._player_settings(config)
    sys.modules.pop("theirs")
    user_module.keep({})  # as in a process on another machine
    assert user.has_run()
    Player(pickle.loads(pickle.dumps(settings)), 1, None, fetch=lambda _: None).close()
    assert user.has_run()


def test_a_sweep_is_read_only_where_it_began(user):
    """Optuna reads its database, which can run any code."""
    write(user.work / "sweep.toml", '[sweep]\nconfigs = "inverted_pendulum"\nseeds = 2\n')
    sweep = load_sweep("sweep.toml", out=user.work / "out")
    sweep.out.mkdir()
    Study(sweep.out, new=True).begin(sweep, lambda trial: True)
    moved = sweep.out.rename(user.work / "moved")
    shutil.copytree(moved, sweep.out)
    assert len(Study(sweep.out, trust=True).trials()) == 2  # has no effect
    for read in (lambda: Study(sweep.out), lambda: run_sweep(sweep), lambda: Inspection([sweep.out])):
        with pytest.raises(NotTrustedError, match=r"sweep\.db, .* not begun on this machine.*--trust"):
            read()
    shutil.rmtree(sweep.out)
    moved.rename(sweep.out)
    assert len(Study(sweep.out).trials()) == 2


def test_what_the_user_names_needs_no_trust(user, run, made):
    """Configuration of the user that references the same modules on Python's search path."""
    shutil.copy(made.work / "theirs.py", user.work)
    write(user.work / "run.toml", RUN)
    done = user("train", "run.toml", "--resume", run, "--set", "training.generations=3")
    assert done.returncode == 0, done.stderr
    assert user("evaluate", run, *PLAY).returncode == 2  # this does not make the run trusted


def test_environments(user, made):
    """Modules, keywords and models that environments reference."""
    got = user.work / "got"
    write(made.work / "plain.toml", PLAIN)
    if not (made.work / "plain").exists():
        assert made("train", "plain.toml", "--out", "plain").returncode == 0
    shutil.copytree(made.work / "plain", got)
    shutil.copy(made.work / "theirs.py", user.work)
    text = (got / "config.toml").read_text()
    model = write(user.work / "robot.xml", "<mujoco/>")
    for env, expected in (
        ('"gymnasium:theirs:Env-v0"', "imports the module theirs"),
        ('"brax:theirs:ant"', "imports the module theirs"),
        (f'"mjx:{model}"', f"has MuJoCo read {model}"),
        (f'"Hopper-v5"\noptions = {{xml_file = "{model}"}}', f"has MuJoCo read {model}"),
        (
            f'"gymnasium:Hopper-v5"\noptions = {{kwargs = {{xml_file = "{model}"}}}}',
            "which may name a file or a module",
        ),
        ('"gymnasium:GymV21Environment-v0"\noptions = {kwargs = {env_id = "theirs:X"}}', "'theirs:X'"),
    ):
        set_config(got, text.replace('"HardMaze-v0"', env))
        for ask in (RunReader, RunFolder.resume, lambda run: neuroevo.load_config(run / "config.toml")):
            with pytest.raises(NotTrustedError, match=re.escape(expected)):
                ask(got)
    for address, expected in (
        ("127.0.0.1:9", "joins the Ray cluster at 127.0.0.1:9"),
        ("auto", "joins the Ray cluster that RAY_ADDRESS names or that runs on this machine"),
    ):
        set_config(got, text + f'\n[cluster]\naddress = "{address}"\n')
        done = user("train", "--resume", got)
        assert done.returncode == 2 and expected in done.stderr and "--trust" in done.stderr
        assert user("evaluate", got, *PLAY).returncode == 0  # the environment works here
    done = user("train", "--resume", got, "--cluster", "none", "--set", "training.generations=3")
    assert done.returncode == 0, done.stderr


def test_a_model_that_has_changed_is_told(user):
    import gymnasium

    assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    model = Path(shutil.copy(assets / "inverted_pendulum.xml", user.work / "robot.xml"))
    write(
        user.work / "run.toml", PLAIN.replace('"HardMaze-v0"', f'"InvertedPendulum-v5"\noptions.xml_file = "{model}"')
    )
    done = user("train", "run.toml", "--out", "mine")
    assert done.returncode == 0, done.stderr
    assert user("evaluate", "mine", *PLAY).returncode == 0
    moved = model.rename(user.work / "moved.xml")  # given on the command line, so trusted
    words = ("train", "--resume", "mine", "--set", "training.generations=3", "--set", f"env.options.xml_file={moved}")
    done = user(*words)
    assert done.returncode == 0, done.stderr
    moved.write_text(moved.read_text() + "\n")
    refused = user("evaluate", "mine", *PLAY)
    assert refused.returncode == 2 and f"env.options.xml_file: {moved} has changed " in refused.stderr, refused.stderr


PICKLED = MODULE.replace("pickled = False", "pickled = True")


def test_no_pickle_of_a_stranger_s_run(user):
    write(user.work / "theirs.py", PICKLED)
    write(user.work / "run.toml", RUN)
    assert user("train", "run.toml", "--out", "mine").returncode == 0
    assert user("train", "--resume", "mine", "--set", "training.generations=3").returncode == 0
    shutil.copytree(user.work / "mine", user.work / "got")
    again = ("train", "run.toml", "--resume", "got", "--set", "training.generations=4")  # with this user's module
    done = user(*again)
    assert done.returncode == 2 and "contains a pickle" in done.stderr and "--trust" in done.stderr, done.stderr
    with pytest.raises(ValueError, match="contains a pickle"):
        neuroevo.runs.reader.RunReader("got", like=neuroevo.load_config("run.toml")).state()
    assert neuroevo.open_run("got", trust=True).state().generation == 3
    done = user(*again, "--trust")
    assert done.returncode == 0, done.stderr


def test_a_module_below_folders_that_are_no_packages_is_found(tmp_path, monkeypatch):
    file = tmp_path / "outer_folder" / "inner_folder" / "module.py"
    file.parent.mkdir(parents=True)
    file.write_text("raise SystemExit('this ran')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert user_module.located("outer_folder.inner_folder.module") == file
    assert user_module.located("outer_folder.inner_folder.other") is None
    assert not any(name.startswith("outer_folder") for name in sys.modules)
