"""ElectLeaders: by a client's wish, and by the clock.

By the clock, leadership goes back to the preferred replicas, and partitions that nobody may lead cleanly get a leader
if their topic was allowed unclean elections since. Both do a limited number at a time, so that others have their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from ottla.cluster.decision import Deciding
from ottla.cluster.entities import NO_LEADER
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.leader_election import Elections, ElectionType
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result, Timer
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import ELECTIONS_PER_TURN_MAX, METADATA_RECORDS_PER_SLICE
from ottla.model.settings.replication import (
    AUTO_LEADER_REBALANCE_ENABLE,
    LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS,
    UNCLEAN_LEADER_ELECTION_INTERVAL_MS,
)

PREFERRED, UNCLEAN = 0, 1  # on the wire
_KINDS = {PREFERRED: ElectionType.PREFERRED, UNCLEAN: ElectionType.UNCLEAN}


class ElectionOutcome(NamedTuple):
    """What became of one partition."""

    topic: str
    partition: int
    error: ApiError | None


class ElectLeaders(NamedTuple):
    """Replies with an ElectionOutcome for each partition. Without a list: all partitions that need an election."""

    kind: int
    partitions: tuple[tuple[str, int], ...] | None

    def decide(self, view: MetadataView, now_ms: int) -> Deciding:
        if self.kind not in _KINDS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {self.kind}")
        elections = Elections(view)
        records: list[MetadataEntry] = []
        outcomes: list[ElectionOutcome] = []
        for name, index in self._asked(view) if self.partitions is None else self.partitions:
            if (len(outcomes) + 1) % METADATA_RECORDS_PER_SLICE == 0:
                yield
            try:
                records.append(_elect(view, elections, self.kind, name, index))
                outcomes.append(ElectionOutcome(name, index, None))
            except ApiError as error:
                outcomes.append(ElectionOutcome(name, index, error))
        return Result(records, outcomes)

    def _asked(self, view: MetadataView) -> Iterator[tuple[str, int]]:
        """All that can need it. An election without need is not told when all were asked for."""
        index = view.state.index
        needed: Iterable[tuple[bytes, int]] = index.leaderless
        if self.kind == PREFERRED:
            needed = (*index.unpreferred, *index.leaderless)
        for topic_id, partition in needed:
            yield view.state.topic_by_id[topic_id].name, partition


def _elect(view: MetadataView, elections: Elections, kind: int, name: str, index: int) -> MetadataEntry:
    topic = view.state.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    partition = topic.partitions[index]
    if partition.leader != NO_LEADER and (kind == UNCLEAN or partition.leader == partition.replicas[0]):
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED)
    entry = elections.change(topic, partition, election=_KINDS[kind])
    if entry is None:
        raise ApiError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if kind == PREFERRED else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
    return entry


class BalanceLeaders(NamedTuple):
    """By the clock: preferred replicas lead again where they can."""

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry]:
        records: list[MetadataEntry] = []
        if view.defaults[AUTO_LEADER_REBALANCE_ENABLE]:
            elections = Elections(view)
            topics = view.state.topic_by_id
            found = (
                elections.change(topics[topic_id], topics[topic_id].partitions[index], election=ElectionType.PREFERRED)
                for topic_id, index in view.state.index.unpreferred
            )
            records.extend(islice((entry for entry in found if entry is not None), ELECTIONS_PER_TURN_MAX))
        return Result(records, timers=[_balance(view, now_ms, more=len(records) == ELECTIONS_PER_TURN_MAX)])


class ElectUnclean(NamedTuple):
    """By the clock: a leader at the price of data, for topics that chose so."""

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry]:
        elections = Elections(view)
        topics = view.state.topic_by_id
        found = (
            elections.change(topics[topic_id], topics[topic_id].partitions[index])
            for topic_id, index in view.state.index.leaderless
        )
        records = list(islice((entry for entry in found if entry is not None), ELECTIONS_PER_TURN_MAX))
        return Result(records, timers=[_unclean(view, now_ms, more=len(records) == ELECTIONS_PER_TURN_MAX)])


def periodic(view: MetadataView, now_ms: int) -> list[Timer]:
    """What an active controller does now and then."""
    return [_balance(view, now_ms, more=False), _unclean(view, now_ms, more=False)]


def _balance(view: MetadataView, now_ms: int, *, more: bool) -> Timer:
    interval_ms = view.defaults[LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS] * 1_000
    return Timer("balance leaders", now_ms + (0 if more else interval_ms), BalanceLeaders())


def _unclean(view: MetadataView, now_ms: int, *, more: bool) -> Timer:
    interval_ms = view.defaults[UNCLEAN_LEADER_ELECTION_INTERVAL_MS]
    return elect_unclean(now_ms + (0 if more else interval_ms))


def elect_unclean(at_ms: int) -> Timer:
    """The next time that topics which allow it get leaders at the price of data."""
    return Timer("unclean elections", at_ms, ElectUnclean())
