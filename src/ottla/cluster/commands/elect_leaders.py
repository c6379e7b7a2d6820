"""ElectLeaders: elections that a client asks for, and periodic ones.

The periodic ones give leadership back to the preferred replicas, and elect leaders uncleanly for partitions without one
whose topic has allowed it since. Both elect a limited number at a time, so that other commands have their turn.
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
    """The result for one partition."""

    topic: str
    partition: int
    error: ApiError | None


class ElectLeaders(NamedTuple):
    """Replies with an ElectionOutcome for each partition; without a list, for all partitions that need an election."""

    kind: int
    partitions: tuple[tuple[str, int], ...] | None

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[list[ElectionOutcome]]:
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
        """Yield all partitions that may need this election. If the client named none, those that do not need it are
        left out.
        """
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
    """Periodic: preferred replicas become leaders again where they can."""

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, None]:
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
    """Periodic: elect leaders uncleanly, at the price of data, for topics that allow it."""

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, None]:
        elections = Elections(view)
        topics = view.state.topic_by_id
        found = (
            elections.change(topics[topic_id], topics[topic_id].partitions[index])
            for topic_id, index in view.state.index.leaderless
        )
        records = list(islice((entry for entry in found if entry is not None), ELECTIONS_PER_TURN_MAX))
        return Result(records, timers=[_unclean(view, now_ms, more=len(records) == ELECTIONS_PER_TURN_MAX)])


def periodic(view: MetadataView, now_ms: int) -> list[Timer]:
    """Return the timers of the periodic elections of an active controller."""
    return [_balance(view, now_ms, more=False), _unclean(view, now_ms, more=False)]


def _balance(view: MetadataView, now_ms: int, *, more: bool) -> Timer:
    interval_ms = view.defaults[LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS] * 1_000
    return Timer("balance leaders", now_ms + (0 if more else interval_ms), BalanceLeaders())


def _unclean(view: MetadataView, now_ms: int, *, more: bool) -> Timer:
    interval_ms = view.defaults[UNCLEAN_LEADER_ELECTION_INTERVAL_MS]
    return elect_unclean(now_ms + (0 if more else interval_ms))


def elect_unclean(at_ms: int) -> Timer:
    """Return the timer of the next unclean elections."""
    return Timer("unclean elections", at_ms, ElectUnclean())
