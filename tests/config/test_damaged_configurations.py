"""Randomly damaged configurations and sweeps are loaded or raise a UserError that names the file, nothing else."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given

from neuroevo.config.load import load_config
from neuroevo.config.schema import Config
from neuroevo.config.sources import apply
from neuroevo.core.errors import UserError
from neuroevo.sweeps.sweep import load_sweep
from neuroevo.system.reading import DEEPEST, parse_json, parse_toml
from tests.support.mutants import bounded, changed, damaged, fuzz, seeds
from tests.support.runs import config
from tests.support.sweeps import write

TOML = config().toml()
OF_2018 = {
    "game": "frostbite",
    "model": "LargeModel",
    "num_validation_episodes": 30,
    "num_test_episodes": 200,
    "population_size": 1000,
    "episode_cutoff_mode": 5000,
    "timesteps": 1.5e9,
    "validation_threshold": 10,
    "mutation_power": 0.002,
    "selection_threshold": 20,
}
OF_STRATEGIES = {
    "game": "frostbite",
    "model": "ModelVirtualBN",
    "population_size": 5000,
    "optimizer": {"args": {"stepsize": 0.01}, "type": "adam"},
    "return_proc_mode": "centered_rank",
    "l2coeff": 0.005,
    "mutation_power": {"type": "LinearSchedule", "initial_p": 0.05, "final_p": 0.01, "schedule": 500},
}


def read(path, text):
    """A configuration file with this text is loaded, or rejected with its name in the message."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"))
    with bounded(64):
        try:
            made = load_config(path)
        except UserError as error:
            assert str(path) in str(error)
            return None
    assert isinstance(made, Config)
    return made


@fuzz(150)
@given(seed=seeds)
def test_damaged_toml(tmp_path_factory, seed):
    text = damaged(TOML.encode(), seed)
    if b":" not in text:  # references an external module, which would be imported
        read(tmp_path_factory.getbasetemp() / "damaged.toml", text)


@fuzz(150)
@given(seed=seeds)
def test_damaged_json_of_2018(tmp_path_factory, seed):
    for values in (OF_2018, OF_STRATEGIES):
        path = tmp_path_factory.getbasetemp() / "damaged.json"
        read(path, damaged(json.dumps(values, indent=1).encode(), seed))
        read(path, json.dumps(changed(values, seed)))


@fuzz(100)
@given(seed=seeds)
def test_damaged_sweeps(tmp_path_factory, seed):
    folder = tmp_path_factory.getbasetemp()
    text = 'configs = ["ga.toml"]\ngames = ["frostbite", "pong"]\nseeds = 2\nset = ["training.generations=3"]\n'
    path = write(folder, text + "normalize = {frostbite = [65.2, 4334.7], pong = [-20.7, 14.6]}\nparallel = 2\n")
    path.write_bytes(damaged(path.read_bytes(), seed))
    with bounded(64):
        try:
            sweep = load_sweep(path, out=folder / "out")
        except UserError as error:
            assert str(error)
            return
    assert sweep.points


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, '{"a":' * 300 + "1" + "}" * 300])
def test_deep_json(tmp_path, text):
    with pytest.raises(ValueError, match=f"deeper than {DEEPEST}"):
        parse_json(text)
    path = tmp_path / "c.json"
    path.write_text(f'{{"game": {text}}}')
    with pytest.raises(UserError, match="c.json is not valid JSON"):
        load_config(path)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "[" * 100 + "]" * 100, "a" + ".a" * 300 + " = 1"])
def test_deep_toml(tmp_path, text):
    with pytest.raises(ValueError, match="deeper"):
        parse_toml(text)
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(UserError, match="c.toml is not valid TOML"):
        load_config(path)
    with pytest.raises(UserError, match="c.toml is not valid TOML"):
        load_sweep(path)


@pytest.mark.parametrize("name", ["a\0b", "a" * 300, "a" * 300 + "/config.toml", "a\0b/config.toml", "a\0b.json"])
def test_names_that_no_file_has(tmp_path, name):
    with pytest.raises(UserError, match="^(cannot read |'a)"):
        load_config(name)
    path = write(tmp_path, f"configs = [{json.dumps(name)}]")
    with pytest.raises(UserError, match="cannot read |not a valid file name"):
        load_sweep(path)


def test_numbers_of_thousands_of_digits(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(OF_2018).replace("1000", "1" * 5000))
    with pytest.raises(UserError, match="c.json is not valid JSON"):
        load_config(path)
    (tmp_path / "c.toml").write_text(TOML.replace("seed = 4", f"seed = {'1' * 5000}"))
    with pytest.raises(UserError, match="c.toml is not valid TOML"):
        load_config(tmp_path / "c.toml")
    with pytest.raises(UserError, match="training.seed"):
        apply({}, f"training.seed = [{'1' * 5000}]")
    for key in ("seed", "bogus"):
        (tmp_path / "c.toml").write_text(f"[training]\n{key} = 0x{'f' * 100_000}")
        with pytest.raises(UserError, match="c.toml is not valid TOML"):
            load_config(tmp_path / "c.toml")


def test_what_is_no_regular_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        for load in (load_config, load_sweep):
            with bounded(64), pytest.raises(UserError, match=f"^cannot read {path}: Not a regular file"):
                load(path)


def test_files_of_gigabytes(tmp_path):
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, 30 << 30)
    for load in (load_config, load_sweep):
        with bounded(64), pytest.raises(UserError, match="it has more than 16,777,216 bytes"):
            load(path)
    changes = {"env": {"name": "hard_maze", "options": {"map": str(path)}}, "network": {"name": "mlp"}}
    with bounded(64), pytest.raises(UserError, match="has 32,212,254,720 bytes, expected at most 1,048,576"):
        config(**changes)


def test_lines_may_end_as_on_any_system(tmp_path):
    for end in ("\n", "\r\n"):
        (tmp_path / "c.toml").write_bytes(b"\xef\xbb\xbf" + TOML.replace("\n", end).encode())
        assert load_config(tmp_path / "c.toml") == config()


def test_a_sweep_of_millions_of_trials(tmp_path):
    names = [f"{number}.toml" for number in range(2000)]
    path = write(tmp_path, f"configs = {names}\nseeds = 9000")
    with bounded(64), pytest.raises(UserError, match="18,000,000 trials, expected at most 10,000"):
        load_sweep(path)


def test_limits_are_far_from_what_is_meant():
    nested = json.loads("[" * DEEPEST + "]" * DEEPEST)
    assert parse_json(json.dumps(nested)) == nested and parse_toml(f"a = {'[' * 50}1{']' * 50}")
