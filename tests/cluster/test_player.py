"""Player without Ray: results, fetched tables, and rejected settings."""

import threading
import time
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from neuroevo.cluster.origin import origin
from neuroevo.cluster.player import Player, PlayerSettings
from neuroevo.cluster.schedule import Piece
from neuroevo.cluster.table import table_of
from neuroevo.core.episode import Batch, Episode
from neuroevo.core.errors import EnvironmentFailure, UserError
from neuroevo.core.evaluator import OwnNetworkLimits
from neuroevo.core.genome import Center, Genome
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator

NETWORK = Network(name="mlp", hidden=(6,))
SETTINGS = PlayerSettings("HardMaze-v0", {}, None, NETWORK, device="cpu", origin=origin())
SCALE = float(np.float32(0.1))


@pytest.fixture(scope="module")
def dimension():
    with LocalEvaluator("HardMaze-v0", NETWORK, threads=1) as evaluator:
        return evaluator.dimension


@pytest.fixture
def make_player():
    """Provide a factory of players that are closed after the test."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(Player(*arguments))


def episodes_of(bases):
    """Two children of each base, two episodes of each child."""
    children = [Genome(base).child(seed, SCALE) for base in bases for seed in (1, 2)]
    return [Episode(child, seed, 50) for child in children for seed in (3, 4)]


def played(player, tables, pieces):
    """Return the outcomes of pieces, as batches of the sizes of the tables."""
    batches = {number: Batch(len(table)) for number, table in tables.items()}
    new = {piece.batch: piece.batch for piece in pieces}
    player.submit([(piece, 0) for piece in pieces[:1]], new)
    player.submit([(piece, 0) for piece in pieces[1:]], {})
    while any(batch.left for batch in batches.values()):
        for number, results in player.results(1, 0.5).results:
            batches[number].book(results)
    return {number: batch.outcomes for number, batch in batches.items()}


def test_pieces_in_any_order_are_the_batch(dimension, make_player):
    center = Center(np.random.default_rng(0).normal(size=dimension).astype(np.float32))
    episodes = {0: episodes_of([1, 2]), 1: episodes_of([center, 3])}
    with LocalEvaluator("HardMaze-v0", NETWORK, threads=2) as evaluator:
        expected = {number: evaluator.evaluate(own) for number, own in episodes.items()}
    tables, fetched = {number: table_of(own) for number, own in episodes.items()}, []

    def fetch(number):
        fetched.append(number)
        return tables[number], [center.vector for _ in tables[number].tree.centers]

    player = make_player(SETTINGS, 2, None, fetch)
    pieces = [Piece(number, np.array(own, np.int32)) for own in ([7, 0], [5], [1, 2, 3], [6, 4]) for number in (1, 0)]
    found = played(player, tables, pieces)
    assert fetched == [1, 0]  # each table and its centers once
    for number, outcomes in found.items():
        assert np.array_equal(outcomes.returns, expected[number].returns)
        assert np.array_equal(outcomes.steps, expected[number].steps)
    done = player.results(1, 0.0)
    assert done.results == [] and 0 < done.work.busy_seconds < done.work.thread_seconds
    steps = sum(int(outcomes.steps.sum()) for outcomes in expected.values())
    assert steps / 2 <= done.work.steps <= steps  # the two episodes of a genome are identical and may share a play
    player.submit([], {}, over=[0, 1])
    with pytest.raises(KeyError):
        player.submit([(pieces[0], 0)], {})  # it has forgotten the table
    played(player, tables, [Piece(0, np.arange(8, dtype=np.int32)), *pieces[0::2]])
    assert fetched == [1, 0, 0, 1]


def test_pieces_wait_for_places_of_their_networks(make_player):
    """Of 12, while another thread collects the results of earlier pieces."""
    limits = OwnNetworkLimits(2, 1000)
    with LocalEvaluator("HardMaze-v0", NETWORK, threads=1, own_networks=limits) as evaluator:
        texts = [evaluator.network_texts[0].replace("dense 6", f"dense {units}") for units in range(1, 41)]
        episodes = [Episode(Genome(1, text), 3, 300) for text in texts]
        expected = [evaluator.evaluate([each]).returns[0] for each in episodes]
    table = table_of(episodes)
    player = make_player(replace(SETTINGS, own_networks=limits), 2, None, lambda where: (table, []))
    pieces = [Piece(0, np.arange(at, at + 2, dtype=np.int32)) for at in range(0, 40, 2)]
    assert list(played(player, {0: table}, pieces)[0].returns) == expected


def test_new_pieces_reach_a_player_that_waits(make_player):
    table = table_of(episodes_of([1]))
    player = make_player(SETTINGS, 1, None, lambda where: (table, []))
    later = threading.Timer(
        0.2,
        player.submit,
        ([(Piece(0, np.arange(4, dtype=np.int32)), 0)], {0: None}),
    )
    later.start()
    begun, reports = time.monotonic(), 0
    while reports < 4:
        reports += sum(len(results) for _, results in player.results(1, 60.0).results)
    assert time.monotonic() - begun < 60


def test_a_failure_is_raised_by_every_call(make_player):
    options = {"workers": 1, "kwargs": {"what": "raise", "at": 2}}
    settings = replace(SETTINGS, env="gymnasium:tests.support.gymnasium_toys:ToyTrouble-v0", env_options=options)
    table = table_of(episodes_of([1]))
    player = make_player(settings, 1, None, lambda where: (table, []))
    player.submit([(Piece(0, np.arange(4, dtype=np.int32)), 0)], {0: None})
    for _ in range(2):
        with pytest.raises(EnvironmentFailure, match="the toy broke"):
            player.results(1, 60.0)


def test_an_environment_that_fails_by_chance(make_player, tmp_path, monkeypatch):
    """The outcomes are those without trouble, and say how often an episode was played again."""
    file = tmp_path / "unlucky"
    monkeypatch.setenv("UNLUCKY", str(file))
    options = {"workers": 1, "kwargs": {"what": "be killed"}}
    settings = replace(SETTINGS, env="gymnasium:tests.support.gymnasium_toys:ToyUnlucky-v0", env_options=options)
    table = table_of(episodes_of([1]))
    found = []
    for times in (0, 2):
        file.write_bytes(b"x" * times)
        player = make_player(settings, 1, None, lambda where: (table, []))
        found.append(played(player, {0: table}, [Piece(0, np.arange(4, dtype=np.int32))])[0])
    assert [outcomes.retries for outcomes in found] == [0, 2]
    assert np.array_equal(found[0].returns, found[1].returns)


def test_another_version_is_refused():
    for name in origin():
        with pytest.raises(UserError, match=name.split()[0]):
            Player(replace(SETTINGS, origin={**origin(), name: "another"}), 1, None, lambda where: where)


def test_another_file_is_refused(tmp_path):
    maze = tmp_path / "maze.txt"
    maze.write_text("0 0")
    settings = replace(SETTINGS, env_options={"map": str(maze)}, file_sum="0" * 64)
    with pytest.raises(UserError, match=str(maze)):
        Player(settings, 1, None, lambda where: where)
