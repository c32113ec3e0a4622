"""Assignment of episodes to players: pure bookkeeping, without Ray, clocks or networks; the caller passes the time.

Players pull: one gets as many episodes as it has slots, and a few ahead, so that a slot that becomes free need not wait
for the driver. Toward the end of what is pending it gets fewer ahead, and at last none, so that no player keeps
episodes waiting while another has nothing to do. Batches of a lower priority number go first; others fill the gaps.

Episodes of a player that died, or is silent, go back to the front. When nothing is pending, a player with free slots
also gets episodes of one that takes much longer over an episode than it does. Several players may then have the same
one: the first result counts, and the others, which are equal, are dropped.

An episode that was being played when a player died is a suspect. A suspect of `retries` - 1 deaths is handed out alone,
to a player that plays nothing else; if that one dies too, the episode is what kills.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

AHEAD_SECONDS = 0.6  # how long a player's episodes ahead last, at the rate at which it plays them
_CALL_SECONDS = 0.02  # a player says nothing of less than it plays in this time
_MOST_AHEAD = 4096
_SLOWER = 2.0  # an episode is played again elsewhere if its rest takes more than this many times an episode there
_NEWEST = 0.2  # the weight of the newest episode in the mean time that a player takes over one


@dataclass(frozen=True, eq=False)
class Piece:
    """Some of a batch's episodes, for a player.

    Attributes:
        batch: The batch's number.
        episodes: int32 [K], their indices in the batch.
    """

    batch: int
    episodes: np.ndarray


class KilledTooOften(Exception):  # noqa: N818 (it says what happened)
    """An episode has cost as many players as it may.

    Attributes:
        batch: The batch's number.
        episode: Its index in the batch.
        deaths: How many players it has cost.
    """

    def __init__(self, batch: int, episode: int, deaths: int):
        super().__init__(f"episode {episode} of batch {batch} has cost {deaths} players")
        self.batch, self.episode, self.deaths = batch, episode, deaths


class Schedule:
    """Pending, assigned and finished episodes.

    Args:
        retries: How many players an episode may cost before KilledTooOften is raised.
    """

    def __init__(self, retries: int = 3):
        self._retries = retries
        self._batches: dict[int, _Batch] = {}  # not over, in the order in which they are played
        self._players: dict[int, _Player] = {}

    def add_player(self, player: int, slots: int) -> None:
        """Let a player take part.

        Args:
            player: Its number, which no other player has had.
            slots: How many episodes it plays at a time.
        """
        self._players[player] = _Player(slots)

    def add_batch(self, number: int, episodes: int, priority: int) -> None:
        """Add episodes.

        Args:
            number: The batch's number, which no other batch has had.
            episodes: How many it has.
            priority: Batches of a lower number are played first; equal ones in the order in which they came.
        """
        self._batches[number] = _Batch(number, priority, episodes)
        ordered = sorted(self._batches.items(), key=lambda item: (item[1].priority, item[0]))
        self._batches = dict(ordered)

    def take(self, player: int, now: float = 0.0) -> list[Piece]:
        """Assign to a player the episodes that it should have in addition to those that it has.

        Args:
            player: Its number.
            now: The time in seconds.

        Returns:
            Pieces, in the order in which to play them.
        """
        own = self._players[player]
        if own.alone is not None:
            return []
        suspect = self._suspect()
        if suspect is not None and (own.reserved or not any(other.reserved for other in self._players.values())):
            own.reserved = True  # it runs dry, and then plays the suspect alone
            if own.held:
                return []
            own.reserved, own.alone = False, suspect
            del self._batches[suspect[0]].suspects[suspect[1]]
            own.held[suspect] = now
            return [Piece(suspect[0], np.array([suspect[1]], np.int32))]
        pieces, pending, more_urgent = [], 0, 0
        slots = sum(each.slots for each in self._players.values())
        held = Counter(number for number, _ in own.held)
        for number, batch in self._batches.items():
            pending += batch.pending
            more_urgent += held[number]
            ahead = min(own.ahead, 2 * pending * own.slots // (3 * slots))
            room = own.slots + ahead - more_urgent  # what is less urgent waits behind it at the player
            if room > 0 and batch.pending:
                taken = batch.take(room, own.held)
                own.held.update(((number, index), now) for index in taken)
                more_urgent += len(taken)
                if taken:
                    pieces.append(Piece(number, np.array(taken, np.int32)))
        if not pending:
            pieces += self._of_slower(own, now)
        return pieces

    def _of_slower(self, own: _Player, now: float) -> list[Piece]:
        """Assign to free slots episodes that others will still have for much longer than this player takes for one."""
        room, found = own.slots - len(own.held), defaultdict(list)
        for other in self._players.values():
            if room <= 0 or not own.takes or other.takes <= _SLOWER * own.takes:
                continue
            for each, since in other.held.items():
                rest, batch = since + other.takes - now, self._batches.get(each[0])
                if room <= 0 or rest <= _SLOWER * own.takes or each in own.held or batch is None:
                    continue
                if batch.play_again(each[1]):
                    own.held[each] = now
                    found[batch.number].append(each[1])
                    room -= 1
        return [Piece(number, np.array(indices, np.int32)) for number, indices in found.items()]

    def finish(self, player: int, batch: int, episodes: Iterable[int], now: float = 0.0) -> np.ndarray:
        """Book results.

        Args:
            player: The player's number.
            batch: The batch's number; the batch may be over already.
            episodes: Indices in the batch of the episodes that have a result.
            now: The time in seconds.

        Returns:
            The places among `episodes` of those that had no result before, int64.
        """
        own, known = self._players.get(player), self._batches.get(batch)
        new = []
        for place, index in enumerate(episodes):
            if own is not None:
                since = own.held.pop((batch, index), None)
                if since is not None:
                    own.finished += 1
                    own.takes += (now - since - own.takes) * (_NEWEST if own.takes else 1.0)
                if own.alone == (batch, index):
                    own.alone = None
            if known is not None and known.finish(index):
                new.append(place)
        if known is not None and not known.left:
            del self._batches[batch]
        return np.array(new, np.int64)

    def measure(self, player: int, seconds: float) -> None:
        """Update how many episodes a player should have ahead, from its rate.

        Args:
            player: The player's number.
            seconds: Time in which it finished what finish() has booked since the last measurement.
        """
        if player in self._players:
            self._players[player].measure(seconds)

    def remove_player(self, player: int) -> None:
        """Remove a dead player and put its episodes back in front.

        Raises:
            KilledTooOften: It played a suspect alone.
        """
        own = self._players.pop(player, None)
        if own is None:
            return
        playing = list(own.held)[: own.slots]  # in the order in which it got them
        for batch, index in playing:
            if batch in self._batches:
                self._batches[batch].deaths[index] += 1
        if own.alone is not None and own.alone[0] in self._batches:
            batch, index = own.alone
            deaths = self._batches[batch].deaths[index]
            if deaths >= self._retries:
                raise KilledTooOften(batch, index, deaths)
        self._put_back(own)

    def give_up_on(self, player: int) -> None:
        """Let others also play what a silent player has; it gets no more episodes before it has had a result."""
        self._put_back(self._players[player])

    def held(self, player: int) -> int:
        """Return the number of episodes that a player has."""
        return len(self._players[player].held)

    def enough(self, player: int) -> int:
        """Return how many of its episodes should be over before a player reports; 0 if it has none.

        While episodes are pending, the number is large enough for the call to be worth it, and small enough that no
        slot has to wait for long.
        """
        own, held = self._players[player], self.held(player)
        if not self.pending:
            return held
        worth = max(1.0, own.ahead * _CALL_SECONDS / AHEAD_SECONDS)
        return min(held, int(max(worth, (held - own.slots) * 3 / 4)))

    @property
    def pending(self) -> int:
        """Number of episodes that no player has."""
        return sum(batch.pending + len(batch.suspects) for batch in self._batches.values())

    @property
    def players(self) -> list[int]:
        """Numbers of the players that take part."""
        return list(self._players)

    def _put_back(self, own: _Player) -> None:
        for batch, index in reversed(own.held):
            if batch in self._batches:
                self._batches[batch].put_back(index, self._retries - 1)

    def _suspect(self) -> tuple[int, int] | None:
        for number, batch in self._batches.items():
            for index in batch.suspects:
                return number, index
        return None


@dataclass
class _Player:
    slots: int
    held: dict[tuple[int, int], float] = field(default_factory=dict)  # since when, by (batch, index), oldest first
    takes: float = 0.0  # seconds over an episode, since it got it; 0: not known
    alone: tuple[int, int] | None = None  # the suspect that it plays
    reserved: bool = False  # it runs dry for a suspect
    finished: int = 0  # since the last measurement
    ahead: int = 1

    def measure(self, seconds: float) -> None:
        if seconds > 0:
            wanted = self.finished / seconds * AHEAD_SECONDS
            self.ahead = int(min(max(1.0, wanted, 0.5 * self.ahead), _MOST_AHEAD))
            self.finished = 0


class _Batch:
    def __init__(self, number: int, priority: int, episodes: int):
        self.number, self.priority, self.left = number, priority, episodes
        self.deaths: defaultdict[int, int] = defaultdict(int)
        self.suspects: dict[int, None] = {}
        self._over = np.zeros(episodes, bool)
        self._next = 0  # first that no player has had
        self._front: dict[int, None] = {}  # put back; the last is taken first
        self._again: set[int] = set()  # handed out twice, since the first player is slow

    @property
    def pending(self) -> int:
        return len(self._over) - self._next + len(self._front)

    def take(self, most: int, held: Collection[tuple[int, int]]) -> list[int]:
        """Take at most `most` episodes, without those that are held already."""
        taken = [index for index in reversed(self._front) if (self.number, index) not in held][:most]
        for index in taken:
            del self._front[index]
        more = range(self._next, min(self._next + most - len(taken), len(self._over)))
        self._next += len(more)
        return [*taken, *more]

    def put_back(self, index: int, most_deaths: int) -> None:
        if not self._over[index]:
            place = self.suspects if self.deaths[index] >= most_deaths else self._front
            place[index] = None

    def play_again(self, index: int) -> bool:
        """Return whether an episode that a player has may be assigned once more, which is possible once per episode."""
        may = not self._over[index] and index not in self._again
        self._again.add(index)
        return may

    def finish(self, index: int) -> bool:
        if self._over[index]:
            return False
        self._over[index] = True
        self.left -= 1
        self._front.pop(index, None)
        self.suspects.pop(index, None)
        return True
