"""Fuzz targets of user input: configurations in TOML and in the JSON of 2018, sweeps, and lines of layers."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.config.load import load_config, load_run_config
from neuroevo.config.sources import presets
from neuroevo.config.template import start
from neuroevo.core.errors import NativeArgumentError, UserError
from neuroevo.native.population import Population
from neuroevo.networks.layer_lines import core_layers
from neuroevo.sweeps.sweep import load_sweep
from tests.config.test_damaged_configurations import OF_2018, OF_STRATEGIES, TOML
from tests.fuzz.parsers.target import Target
from tests.support import sweeps

_TEMPORARY = TemporaryDirectory(prefix="neuroevo_fuzz_")  # as long as the process
_FOLDER = Path(_TEMPORARY.name)


def _toml(data: bytes) -> None:
    """Read a configuration like that of an untrusted run, so that no module is imported and no model is parsed."""
    path = _FOLDER / "config.toml"
    path.write_bytes(data)
    try:
        made = load_run_config(path)
    except UserError as error:
        assert str(_FOLDER) in str(error)
        return
    path.write_text(made.toml())
    assert load_run_config(path).toml() == made.toml()


def _json(data: bytes) -> None:
    path = _FOLDER / "config.json"
    path.write_bytes(data)
    try:
        made = load_config(path)
    except UserError as error:
        assert "config.json" in str(error)
        return
    (_FOLDER / "again.toml").write_text(made.toml())
    assert load_config(_FOLDER / "again.toml").toml() == made.toml()


def _sweep(data: bytes) -> None:
    path = sweeps.write(_FOLDER, "")
    path.write_bytes(data)
    if b":" in data:  # the user's own modules, which would be imported
        return
    try:
        sweep = load_sweep(path, out=_FOLDER / "out")
    except UserError as error:
        assert str(error)
        return
    assert sweep.trials >= max(len(sweep.points), 1) and sweep.metric and sweep.settings.parallel >= 1


def _sweeps() -> list[bytes]:
    games = 'configs = ["ga.toml", "rs.toml"]\ngames = ["frostbite", "pong"]\nseeds = [7, 8]\nparallel = 2\n'
    games += 'normalize = {frostbite = [65.2, 4334.7], pong = [-20.7, 14.6]}\nset = ["training.generations=3"]\n'
    space = '"network.hidden" = [[8], [16, 16]]\nalgorithm.population = [5, 9]\n'
    tpe = 'trials = 3\nsearch = "tpe"\npruner = "asha"\npruner_options = {min_resource = 2}\n'
    pbt = 'configs = "frostbite.toml"\ntrials = 2\nsearch = "pbt"\nsearch_options = {interval = 2, quantile = 0.5}\n'
    texts = [(games,), ('out = "there"\n', space), (tpe,), (pbt,), ('trials = 2\nsearch = "random"\n',)]
    return [sweeps.write(_FOLDER, *text).read_bytes() for text in texts]


def _layers(data: bytes) -> None:
    """Check that the native core accepts all layers that Python accepts, or reports why they do not fit an input."""
    lines = data[1:].decode(errors="replace").split("\n")
    try:
        layers = core_layers(lines)
    except ValueError as error:
        assert "expected" in str(error)
        return
    images = data[0] % 2 == 0
    text = "; ".join(["input uint8 84 84 4" if images else "input float32 17", *layers])
    if len(layers) > 64:  # millions of small ones take the core a while
        return
    try:
        assert Population([text], 1, backend="reference").outputs >= 1
    except NativeArgumentError as error:
        assert str(error)


def _layer_lists() -> list[bytes]:
    images = "conv 32 8x8/4 same\nrelu\nmax_pool 2x2\navg_pool 3x3/2 same\ndense 8 std=0.5 bias=false\nvbn\ngelu"
    numbers = "dense 64\nlayer_norm\nleaky_relu 0.02\nlstm 8 std=2\ntanh\nsilu\nbias"
    return [b"\0" + images.encode(), b"\1" + numbers.encode()]


def _tomls() -> list[bytes]:
    """Every preset, and every key of every algorithm and of several families of environments."""
    made = [start([f"algorithm.name={name}"]) for name in ALGORITHMS]
    made += [start([f"env.name={name}"]) for name in ("HalfCheetah-v5", "HardMaze-v0", "gymnasium:CartPole-v1")]
    return [
        TOML.encode(),
        *(each.toml().encode() for each in made),
        *(each.read_bytes() for each in presets().values()),
    ]


TARGETS = {
    "config_toml": Target(_toml, _tomls),
    "config_2018": Target(_json, lambda: [json.dumps(each, indent=1).encode() for each in (OF_2018, OF_STRATEGIES)]),
    "sweep": Target(_sweep, _sweeps),
    "layer_lines": Target(_layers, _layer_lists),
}
