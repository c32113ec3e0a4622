"""Each episode gets exactly one result, even if players die, become unresponsive, join or are slow."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.cluster.schedule import KilledTooOften, Schedule


def numbers(pieces):
    return [(piece.batch, index) for piece in pieces for index in piece.episodes.tolist()]


def one_batch(episodes, players=(), retries=3):
    """Return a schedule with a batch 0 and players with these numbers of slots, numbered from 0."""
    schedule = Schedule(retries)
    for number, slots in enumerate(players):
        schedule.add_player(number, slots)
    schedule.add_batch(0, episodes, 0)
    return schedule


def test_a_player_gets_its_slots_and_some_ahead_and_at_the_end_none_ahead():
    schedule = one_batch(100, [4, 4])
    schedule.finish(0, 0, [])
    assert len(numbers(schedule.take(0))) == 5  # before its rate is known, one ahead
    held = list(range(5))
    for _ in range(20):  # 40 episodes in a second: 24 ahead last 0.6 s
        schedule.finish(0, 0, held[:2])
        schedule.measure(0, 0.05)
        held = held[2:] + [index for _, index in numbers(schedule.take(0))]
    assert schedule.held(0) > 4 + 5
    while schedule.pending:
        schedule.finish(0, 0, held[:1])
        held = held[1:] + [index for _, index in numbers(schedule.take(0))]
    assert schedule.held(0) <= 4 + 1
    assert schedule.take(1) == []


def test_a_player_says_what_is_over_before_its_slots_run_dry_and_once_at_the_end():
    schedule = one_batch(100, [4])
    assert schedule.enough(0) == 0
    held = numbers(schedule.take(0))
    while schedule.pending:
        assert 1 <= schedule.enough(0) <= max(1, len(held) - 4)
        schedule.finish(0, 0, [index for _, index in held[:1]])
        schedule.measure(0, 0.1)
        held = held[1:] + numbers(schedule.take(0))
    assert schedule.enough(0) == len(held) > 1


def test_short_episodes_are_worth_no_call_each():
    schedule = one_batch(1000, [1])
    schedule.take(0)
    schedule.finish(0, 0, [0])
    schedule.measure(0, 1e-3)  # 20 episodes in 20 ms
    schedule.take(0)
    schedule.finish(0, 0, range(1, 560))
    assert schedule.enough(0) >= 20


def test_what_is_ahead_is_shared_out_by_slots():
    """No player queues episodes that other players could start at once."""
    schedule = one_batch(12, [8, 4])
    assert len(numbers(schedule.take(0))) == 9
    assert len(numbers(schedule.take(1))) == 3


def test_batches_go_by_priority_and_then_in_the_order_in_which_they_came():
    schedule = Schedule()
    schedule.add_player(0, 100)
    for number, priority in enumerate([3, 0, 2, 0]):
        schedule.add_batch(number, 2, priority)
    assert [number for number, _ in numbers(schedule.take(0))] == [1, 1, 3, 3, 2, 2, 0, 0]


def test_the_episodes_of_a_dead_player_go_first():
    schedule = one_batch(100, [2, 2])
    lost = numbers(schedule.take(0))
    schedule.remove_player(0)
    again = numbers(schedule.take(1))
    assert again[: len(lost)] == lost
    assert len(set(again)) == len(again)


def test_the_first_result_counts():
    schedule = one_batch(3, [2, 2])
    slow = [index for _, index in numbers(schedule.take(0))]
    schedule.give_up_on(0)
    assert set(slow) <= {index for _, index in numbers(schedule.take(1))}
    assert schedule.finish(1, 0, slow).tolist() == list(range(len(slow)))
    assert schedule.finish(0, 0, slow).tolist() == []
    assert schedule.held(0) == 0


def test_a_player_with_nothing_to_do_plays_what_a_slower_one_has():
    schedule = one_batch(100, [2, 2])
    for now, player in [(0.0, 0), (0.0, 1)]:
        schedule.take(player, now)
    first = {player: [index for _, index in schedule._players[player].held] for player in (0, 1)}
    schedule.finish(0, 0, first[0], 1.0)  # it takes a second over an episode
    schedule.finish(1, 0, first[1], 8.0)  # and the other one eight
    fast, slow = [], [index for _, index in numbers(schedule.take(1, 8.0))]
    while schedule.pending:
        fast += [index for _, index in numbers(schedule.take(0, 9.0))]
        schedule.finish(0, 0, fast, 9.0)
    assert slow and schedule.held(1) == len(slow)
    assert schedule.take(1, 9.0) == []  # no player is slower
    again = [index for _, index in numbers(schedule.take(0, 9.0))]
    assert again == slow[:2] and schedule.take(0, 9.0) == []  # as many as it has slots, each once
    assert schedule.finish(0, 0, again, 10.0).tolist() == [0, 1]
    assert schedule.finish(1, 0, slow[:2], 16.0).tolist() == []
    assert schedule.take(0, 15.9) == []  # the slow one is about to end the rest itself


def test_equal_players_do_not_play_each_other_s():
    schedule = one_batch(4, [2, 2])
    held = {player: [index for _, index in numbers(schedule.take(player, 0.0))] for player in (0, 1)}
    assert schedule.finish(0, 0, held[0][:1], 1.0).tolist() == [0]
    schedule.finish(1, 0, held[1], 1.5)
    assert schedule.take(1, 1.5) == []


def test_a_silent_player_that_answers_again_does_not_get_what_it_has():
    schedule = one_batch(4, [2])
    before = numbers(schedule.take(0))
    schedule.give_up_on(0)
    assert schedule.pending == 4
    assert schedule.take(0) == []  # its slots are taken
    assert schedule.finish(0, 0, [index for _, index in before]).tolist() == list(range(len(before)))
    assert not set(numbers(schedule.take(0))) & set(before)


def play_with_a_killer(killer, episodes, retries, players):
    """Play a batch in which an episode kills its player; each player plays its oldest episodes first."""
    schedule, held, born = one_batch(episodes, [2] * players, retries), {}, players
    over, deaths = set(), 0
    for _ in range(100 * episodes):
        for number in schedule.players:
            held.setdefault(number, []).extend(index for _, index in numbers(schedule.take(number)))
            playing = held[number][:2]
            if killer in playing:
                deaths += 1
                del held[number]
                schedule.add_player(born, 2)
                born += 1
                schedule.remove_player(number)
            elif playing:
                over.update(playing[i] for i in schedule.finish(number, 0, playing))
                held[number] = held[number][len(playing) :]
    return over, deaths


@pytest.mark.parametrize("retries", [1, 2, 3, 5])
@pytest.mark.parametrize("players", [1, 2, 3])
def test_an_episode_that_kills_is_found(retries, players):
    with pytest.raises(KilledTooOften) as raised:
        play_with_a_killer(killer=7, episodes=40, retries=retries, players=players)
    assert (raised.value.batch, raised.value.episode) == (0, 7)
    assert raised.value.deaths == max(2, retries)  # the killer is known once it was played alone


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(0, 2**32),
    st.integers(0, 12),
)
def test_every_episode_gets_one_result(sizes, slots, seed, troubles):
    """Players finish some of their episodes in any order; some die, become unresponsive or join."""
    random = Random(seed)
    schedule = Schedule(retries=1000)
    for number, size in enumerate(sizes):
        schedule.add_batch(number, size, random.randint(0, 2))
    held, results = {}, {(number, index): 0 for number, size in enumerate(sizes) for index in range(size)}
    for player, count in enumerate(slots):
        schedule.add_player(player, count)
        held[player] = []
    rounds, now = 0, 0.0
    while not all(results.values()):
        rounds += 1
        assert rounds < 10_000
        player = random.choice(schedule.players)
        held[player] += numbers(schedule.take(player, now := now + random.random()))
        assert len(set(held[player])) == len(held[player]) == schedule.held(player)
        if troubles and random.random() < 0.3:
            troubles -= 1
            trouble = random.randrange(3)
            if trouble == 0:
                schedule.remove_player(player)
                del held[player]
            elif trouble == 1:
                schedule.give_up_on(player)
            if trouble == 2 or not schedule.players:
                schedule.add_player(new := 1000 + rounds, random.randint(1, 4))
                held[new] = []
            continue
        done = random.sample(held[player], random.randint(0, len(held[player])))
        held[player] = [each for each in held[player] if each not in done]
        for number in {batch for batch, _ in done}:
            own = [index for batch, index in done if batch == number]
            for place in schedule.finish(player, number, own, now):
                results[number, own[place]] += 1
        schedule.measure(player, random.random())
    assert set(results.values()) == {1}
    assert schedule.pending == 0


def test_a_batch_that_is_over_is_forgotten():
    schedule = one_batch(1, [1, 1])
    schedule.take(0)
    assert schedule.finish(0, 0, [0]).tolist() == [0]
    assert schedule.finish(1, 0, [0]).tolist() == []
    assert isinstance(schedule.finish(1, 0, [0]), np.ndarray)
