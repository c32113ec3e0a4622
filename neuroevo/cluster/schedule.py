"""Assignment of episodes to players: pure bookkeeping, without Ray, clocks or networks; the caller passes the time.

Players pull work: each gets as many episodes as it has slots, plus some prefetched ones, so that a slot that becomes
free need not wait for the driver. As fewer episodes are pending, players prefetch fewer and finally none, so that no
player queues episodes while another is idle. Batches with a lower priority number are assigned first.

Episodes of a dead or unresponsive player return to the front of the queue. When nothing is pending, a player with free
slots also gets episodes of players that need much longer per episode. An episode may then be played by several players:
the first result counts, and the later results, which are identical, are dropped.

An episode that was being played when a player died is a suspect. A suspect of `retries` - 1 deaths is assigned to a
player that plays nothing else; if this player dies as well, the episode is the cause.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

AHEAD_SECONDS = 0.6  # playing time of a player's prefetched episodes, at its rate
_CALL_SECONDS = 0.02  # a report covers at least the episodes that a player plays in this time
_MOST_AHEAD = 4096
_SLOWER = 2.0  # an episode is also played elsewhere if its rest takes more than this many times an episode there
_NEWEST = 0.2  # weight of the newest episode in a player's moving average of the time per episode


@dataclass(frozen=True, eq=False)
class Piece:
    """Subset of a batch's episodes that is assigned to a player.

    Attributes:
        batch: The batch's number.
        episodes: Indices of the episodes in the batch, int32 [K].
    """

    batch: int
    episodes: np.ndarray


class KilledTooOften(Exception):  # noqa: N818 (the name describes the event)
    """Exception for an episode that has killed the maximal number of players.

    Attributes:
        batch: The batch's number.
        episode: Index of the episode in the batch.
        deaths: Number of players that it has killed.
    """

    def __init__(self, batch: int, episode: int, deaths: int):
        super().__init__(f"episode {episode} of batch {batch} has killed {deaths} players")
        self.batch, self.episode, self.deaths = batch, episode, deaths


class Schedule:
    """Pending, assigned and finished episodes.

    Args:
        retries: Number of players that an episode may kill before KilledTooOften is raised.
    """

    def __init__(self, retries: int = 3):
        self._retries = retries
        self._batches: dict[int, _Batch] = {}  # unfinished batches in the order in which they are played
        self._players: dict[int, _Player] = {}

    def add_player(self, player: int, slots: int) -> None:
        """Add a player.

        Args:
            player: Unique number of the player.
            slots: Number of episodes that it plays concurrently.
        """
        self._players[player] = _Player(slots)

    def add_batch(self, number: int, episodes: int, priority: int) -> None:
        """Add a batch.

        Args:
            number: Unique number of the batch.
            episodes: Number of its episodes.
            priority: Batches with a lower priority number are played first; equal ones in the order of their numbers.
        """
        self._batches[number] = _Batch(number, priority, episodes)
        ordered = sorted(self._batches.items(), key=lambda item: (item[1].priority, item[0]))
        self._batches = dict(ordered)

    def take(self, player: int, now: float = 0.0) -> list[Piece]:
        """Assign further episodes to a player.

        Args:
            player: The player's number.
            now: The time in seconds.

        Returns:
            Pieces, in the order in which to play them.
        """
        own = self._players[player]
        if own.alone is not None:
            return []
        suspect = self._suspect()
        if suspect is not None and (own.reserved or not any(other.reserved for other in self._players.values())):
            own.reserved = True  # it finishes its episodes, and then plays the suspect alone
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
            room = own.slots + ahead - more_urgent  # the player queues less urgent episodes behind more urgent ones
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
        """Assign to free slots episodes whose rest takes other players much longer than this player needs for one."""
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
        """Record results.

        Args:
            player: The player's number.
            batch: The batch's number; the batch may already be finished.
            episodes: Indices in the batch of the episodes with a result.
            now: The time in seconds.

        Returns:
            Positions in `episodes` of the episodes that had no result before, int64.
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
        """Update the number of episodes that a player prefetches from its rate.

        Args:
            player: The player's number.
            seconds: Time in which it finished the episodes recorded by finish() since the last measurement.
        """
        if player in self._players:
            self._players[player].measure(seconds)

    def remove_player(self, player: int) -> None:
        """Remove a dead player and return its episodes to the front of the queue.

        Raises:
            KilledTooOften: The player played a suspect alone.
        """
        own = self._players.pop(player, None)
        if own is None:
            return
        playing = list(own.held)[: own.slots]  # in the order of their assignment
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
        """Return a silent player's episodes to the queue, so that other players also play them."""
        self._put_back(self._players[player])

    def held(self, player: int) -> int:
        """Return the number of episodes assigned to a player."""
        return len(self._players[player].held)

    def enough(self, player: int) -> int:
        """Return the number of finished episodes after which a player should report; 0 if it has no episodes.

        While episodes are pending, the number is large enough to be worth a call, and small enough that no slot waits
        for long.
        """
        own, held = self._players[player], self.held(player)
        if not self.pending:
            return held
        worth = max(1.0, own.ahead * _CALL_SECONDS / AHEAD_SECONDS)
        return min(held, int(max(worth, (held - own.slots) * 3 / 4)))

    @property
    def pending(self) -> int:
        """Number of episodes that are not assigned to any player."""
        return sum(batch.pending + len(batch.suspects) for batch in self._batches.values())

    @property
    def players(self) -> list[int]:
        """Numbers of the active players."""
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
    held: dict[tuple[int, int], float] = field(default_factory=dict)  # assignment times by (batch, index), oldest first
    takes: float = 0.0  # moving average of the seconds from assignment to result; 0: unknown
    alone: tuple[int, int] | None = None  # the suspect that it plays
    reserved: bool = False  # it gets no episodes until it is idle and can play a suspect alone
    finished: int = 0  # episodes since the last measurement
    ahead: int = 1  # number of episodes to prefetch

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
        self._next = 0  # first index that was never assigned
        self._front: dict[int, None] = {}  # returned episodes; the last is taken first
        self._again: set[int] = set()  # assigned twice because the first player is slow

    @property
    def pending(self) -> int:
        return len(self._over) - self._next + len(self._front)

    def take(self, most: int, held: Collection[tuple[int, int]]) -> list[int]:
        """Take at most `most` episodes that are not in `held`."""
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
        """Return whether an assigned episode may be assigned to a second player, which happens at most once."""
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
