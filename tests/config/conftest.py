"""Fixtures for invalid configurations and the commands' error messages."""

import pytest
from typer.testing import CliRunner

from neuroevo.cli import app

SOME = '[env]\nname = "frostbite"\n[network]\nname = "model"\n[training]\ngenerations = 1\n'


@pytest.fixture
def error_line(tmp_path, monkeypatch):
    """Run `train` and `config check`, which must reject the arguments with the same message, and return the message.

    The current folder contains a valid some.toml.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.toml").write_text(SOME)

    def of(*arguments, commands=(("train",), ("config", "check"))):
        texts = set()
        for command in commands:
            result = CliRunner().invoke(app, [*command, *map(str, arguments)])
            assert (result.exit_code, result.stdout) == (2, ""), result.output
            assert "Traceback" not in result.stderr
            prefix, _, text = result.stderr.partition(": ")
            assert prefix == "neuroevo" and text.endswith("\n")
            texts.add(text.removesuffix("\n"))
        assert not (tmp_path / "runs").exists()
        (text,) = texts
        return text

    return of
