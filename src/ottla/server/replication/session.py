"""SessionWithLeader: a follower's side of a fetch session (KIP-227) with one leader.

The first fetch names all partitions and the leader remembers them; later ones name only partitions whose position
changed, and those to be forgotten. So the cost of a fetch depends on the changes, not on the number of partitions. If
there are very many, a fetch names some of them, and the next fetches, which are sent at once, the rest. To a leader
that grants no session, every fetch names all partitions.

Requests have numbers. A response does not affect a partition that was added (again) after its request was sent, nor one
whose log end is no longer where that request said.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from ottla.model import limits
from ottla.model.ids import LeaderEpoch
from ottla.model.session_epochs import next_epoch
from ottla.replica.partition import Partition
from ottla.wire.messages.records.fetch import FetchRequest

_Ask = FetchRequest.Topic.Partition


class Key(NamedTuple):
    topic_id: bytes
    index: int  # type: ignore[assignment]  # hides tuple.index, which is not used


class Position(NamedTuple):
    """The values that a fetch sends for a partition; the leader's response depends on all of them."""

    offset: int
    leader_epoch: LeaderEpoch
    last_epoch: LeaderEpoch
    log_start: int


class Followed:
    """One partition of the session."""

    __slots__ = ("epoch", "failures", "key", "partition", "since", "told", "told_in")

    def __init__(self, key: Key, partition: Partition) -> None:
        self.key = key
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.told: Position | None = None
        self.told_in = 0  # the number of the request that sent `told`
        self.since = 0  # the number of the first request that names the partition
        self.failures = 0  # consecutive failures

    def is_answered_by(self, number: int) -> bool:
        """Return whether the response to that request continues at the current log end. It does not if the log end
        moved meanwhile: an earlier response brought the same records, or a failed sync truncated them.
        """
        told = self.told
        return told is not None and number >= self.told_in and told.offset == self.partition.log.next_offset

    def position(self) -> Position:
        partition = self.partition
        log = partition.log
        return Position(log.next_offset, partition.leader_epoch, log.epochs.latest, log.log_start_offset)


class SessionWithLeader:
    def __init__(self) -> None:
        self.followed: dict[Key, Followed] = {}
        self.id = 0
        self.number = 0  # the number of the next request
        self._epoch = 0
        self._changed: dict[Key, Followed] = {}
        self._forgotten: dict[Key, None] = {}
        self.is_refused = False  # the leader granted no session
        self.is_urgent = False  # partitions were added: worth a second request while one waits at the leader

    def add(self, followed: Followed) -> None:
        """Follow a partition from now on, or follow it anew."""
        followed.told = None
        followed.since = self.number
        self.followed[followed.key] = self._changed[followed.key] = followed
        self._forgotten.pop(followed.key, None)
        self.is_urgent = True

    def remove(self, key: Key) -> Followed | None:
        followed = self.followed.pop(key, None)
        self._changed.pop(key, None)
        if followed is not None and followed.told is not None and self.id:
            self._forgotten[key] = None
        return followed

    def moved(self, followed: Followed) -> None:
        """Name the partition in the next request if its position has changed."""
        if followed.position() != followed.told:
            self._changed[followed.key] = followed

    def reset(self) -> None:
        """Start with a full fetch, because the leader does not know the session (any more)."""
        self.id = self._epoch = 0
        self._forgotten.clear()
        for followed in self.followed.values():
            followed.told = None

    def request(self, partition_max_bytes: int) -> FetchRequest:
        """Return the next fetch, without the fields that all fetches have in common."""
        changed = self._changed if self.id else self.followed
        rest: dict[Key, Followed] = {}
        if len(changed) > limits.PARTITIONS_NAMED_PER_FETCH and not self.is_refused:
            named = iter(changed.items())
            changed = dict(islice(named, limits.PARTITIONS_NAMED_PER_FETCH))
            rest = dict(named)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=self.id,
            session_epoch=self._epoch,
            topics=_asks(changed.values(), self.number, partition_max_bytes),
            forgotten_topics_data=_forgotten(self._forgotten),
        )
        self.number += 1
        self._changed, self._forgotten, self.is_urgent = rest, {}, bool(rest)
        if self.id:
            self._epoch = next_epoch(self._epoch)
        return request

    def opened(self, session_id: int) -> None:
        """Take the session id from the response to a full fetch."""
        self.id = session_id
        self._epoch = 1 if session_id else 0
        self.is_refused = session_id == 0


def _asks(changed: Iterable[Followed], number: int, partition_max_bytes: int) -> list[FetchRequest.Topic]:
    topics: dict[bytes, list[_Ask]] = {}
    for followed in changed:
        position = followed.told = followed.position()
        followed.told_in = number
        topic_id, index = followed.key
        ask = _Ask(
            partition=index,
            current_leader_epoch=position.leader_epoch,
            fetch_offset=position.offset,
            last_fetched_epoch=position.last_epoch,
            log_start_offset=position.log_start,
            partition_max_bytes=partition_max_bytes,
        )
        asks = topics.get(topic_id)
        if asks is None:
            topics[topic_id] = [ask]
        else:
            asks.append(ask)
    return [FetchRequest.Topic(topic_id=topic_id, partitions=asks) for topic_id, asks in topics.items()]


def _forgotten(keys: Iterable[Key]) -> list[FetchRequest.ForgottenTopic]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(index)
    return [FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics.items()]
