"""Invalid configuration files, overrides and command lines: exit code 2 and a message with the expected input."""

import pytest
from typer.testing import CliRunner

from neuroevo.cli import app


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("absent.toml", None, ["no configuration file absent.toml"]),
        ("frostbite_gaa", None, ["frostbite_gaa; did you mean the preset frostbite_ga? (presets: "]),
        ("wrong.toml", b"[env]\nname = \n", ["wrong.toml is not valid TOML", "line 2, column 8"]),
        ("zeros.toml", b"\0\0", ["zeros.toml is not valid TOML"]),
        ("binary.toml", b"\x89PNG\r\n\xff\xfe", ["cannot read binary.toml", "byte 0x89"]),
        ("empty.toml", b"", ["2 problems in empty.toml", "\n  env.name: missing", "\n  training: no budget"]),
        ("flat.toml", b"sigma = 1\n", ["3 problems in flat.toml", "\n  sigma = 1: ", "did you mean algorithm.sigma?"]),
        ("table.toml", b"env = 3\n", ["2 problems in table.toml", "\n  env = 3: ", "[env]", "\n  training: "]),
        (".", None, [". is a folder", "TOML file", "preset's name", "JSON file of the 2018 code"]),
        ("wrong.json", b'{"game": "frostbite",}', ["wrong.json is not valid JSON"]),
        ("list.json", b"[1]", ["list.json holds a list", "2018 code's keys (game, "]),
        ("empty.json", b"{}", ["2 problems in empty.json", "\n  game: missing", "\n  training: no budget"]),
        ("binary.json", b"\xff\xfe", ["cannot read binary.json", "'utf-8' codec"]),
    ],
)
def test_files(error_line, tmp_path, name, content, expected):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    text = error_line(name)
    places = [text.find(words) for words in expected]
    assert -1 not in places and places == sorted(places), text


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("training.seed", "--set training.seed: expected SECTION.KEY=VALUE, such as training.seed=3"),
        ("seed=3", "--set seed=3: expected SECTION.KEY=VALUE"),
        ("training.seed=", "--set training.seed=: the value is not valid TOML"),
        ("training.seed.x=1", "1 problem in some.toml:\n  training.seed = {x = 1}: "),
        ("env.name.x=1", '--set env.name.x=1: env.name is "frostbite"'),
    ],
)
def test_overrides(error_line, override, expected):
    assert error_line("some.toml", "--set", override).startswith(expected)


TOO_MANY_THREADS, TOO_MANY = 2**32 + 1, 2**31
RENDER = ["render", ".", "--out", "x.mp4"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["config"], "Usage: "),
        (["config", "chek"], "No such command 'chek'"),
        (["config", "check"], "Missing argument 'FILE'"),
        (["config", "show", "--sett", "x"], "No such option: --sett"),
        (["train", "smoke", "--out", ""], "Invalid value for '--out': it is empty, expected the path of a folder"),
        (["train", "smoke", "--resume="], "Invalid value for '--resume': it is empty"),
        (["sweep", "sweep.toml", "--out="], "Invalid value for '--out': it is empty"),
        (["evaluate", ".", "--max-episode-steps", 10**19 - 1], "Invalid value for '--max-episode-steps'"),
        (["evaluate", ".", "--episodes", TOO_MANY], "Invalid value for '--episodes'"),
        (["evaluate", ".", "--threads", TOO_MANY_THREADS], "Invalid value for '--threads'"),
        ([*RENDER, "--max-episode-steps", TOO_MANY], "Invalid value for '--max-episode-steps'"),
        ([*RENDER, "--episodes", TOO_MANY], "Invalid value for '--episodes'"),
        (["bench", "env", "--threads", TOO_MANY_THREADS], "Invalid value for '--threads'"),
        (["bench", "rollout", "--threads", TOO_MANY_THREADS], "Invalid value for '--threads'"),
    ],
)
def test_wrong_command_lines(arguments, expected):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2
    assert expected in result.output and "Traceback" not in result.output


def test_names_of_no_file(error_line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walker.toml").write_text("")
    (tmp_path / "walker.txt").write_text("")
    (tmp_path / "mine" / "walker-3").mkdir(parents=True)
    assert "no configuration file walkr.toml; did you mean walker.toml?" in error_line("walkr.toml")
    for command in ("evaluate mine/walker-2", "train --resume mine/walker-2", "render mine/walker-2 --out x.mp4"):
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 2
        assert "mine/walker-2/run.db; did you mean mine/walker-3?" in result.output
    result = CliRunner().invoke(app, ["sweep", "walkr.toml"])
    assert result.exit_code == 2 and "no sweep file walkr.toml; did you mean walker.toml?" in result.output
