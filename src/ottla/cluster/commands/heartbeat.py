"""BrokerHeartbeat: a broker reports that it is alive and what it wants: to be unfenced, to be fenced, or to shut down.

A broker is unfenced when it has read the metadata up to its own registration. A broker that wants to shut down loses
its leaderships first; it may stop when all other brokers have read that it no longer leads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain
from typing import NamedTuple

from ottla.cluster import features
from ottla.cluster.commands.fence import fence, unfence, watch
from ottla.cluster.decision import Deciding, Decision, gathered
from ottla.cluster.entities import Broker
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.leader_election import Elections
from ottla.cluster.sessions import BrokerHeard, no_session
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.ids import BrokerEpoch
from ottla.wire.journal import cluster_metadata as journal


class BrokerHeartbeatReply(NamedTuple):
    """The controller's answer to a heartbeat."""

    caught_up: bool
    fenced: bool
    should_shut_down: bool


class _Phase(Enum):
    FENCED = auto()
    UNFENCED = auto()
    LEAVING = auto()
    MAY_STOP = auto()


@dataclass(frozen=True, slots=True)
class BrokerHeartbeat:
    """Replies with a BrokerHeartbeatReply. `metadata_offset` is the last offset that the broker has applied."""

    broker_id: int
    epoch: BrokerEpoch
    metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline_directories: tuple[bytes, ...] = ()
    cordoned: tuple[bytes, ...] | None = None

    def decide(self, view: MetadataView, now_ms: int) -> Decision[BrokerHeartbeatReply]:
        broker = view.checked_broker(self.broker_id, self.epoch)
        now = _phase(broker)
        then = self._next(view, broker, now, self._is_caught_up(broker))
        left = self._left(view, broker)
        records = self._directories(view, broker, left)
        if then is now and left == broker.directories:
            return self._result(view, broker, then, list(records), now_ms)
        if then is not now:
            records = chain(_turn(view, broker._replace(directories=left or broker.directories), then), records)
        return self._moving(view, broker, then, records, now_ms)

    def _moving(
        self, view: MetadataView, broker: Broker, then: _Phase, records: Iterator[MetadataEntry], now_ms: int
    ) -> Deciding[BrokerHeartbeatReply]:
        """Decide in steps: the leaders of thousands of partitions may change."""
        return self._result(view, broker, then, (yield from gathered(records)), now_ms)

    def _is_caught_up(self, broker: Broker) -> bool:
        return self.metadata_offset >= broker.epoch

    def _result(
        self, view: MetadataView, broker: Broker, then: _Phase, records: list[MetadataEntry], now_ms: int
    ) -> Result[MetadataEntry, BrokerHeartbeatReply]:
        fenced = then in (_Phase.FENCED, _Phase.MAY_STOP)
        leaving_at = None
        if then is _Phase.LEAVING:
            heard = view.sessions.find(broker)
            leaving_at = heard.leaving_at if heard is not None else None
            if leaving_at is None:
                leaving_at = view.next_offset() + len(records) - 1
        return Result(
            records,
            BrokerHeartbeatReply(self._is_caught_up(broker), fenced, then is _Phase.MAY_STOP),
            timers=[no_session(broker.id) if fenced else watch(view, broker, now_ms)],
            notes=[BrokerHeard(broker.id, broker.epoch, now_ms, self.metadata_offset, leaving_at)],
        )

    def _next(self, view: MetadataView, broker: Broker, now: _Phase, caught_up: bool) -> _Phase:
        if now is _Phase.FENCED:
            if self.want_shut_down:
                return _Phase.MAY_STOP
            # A broker that was shutting down when it was fenced has to register anew.
            wanted = not self.want_fence and not broker.in_controlled_shutdown
            return _Phase.UNFENCED if caught_up and wanted else _Phase.FENCED
        if now is _Phase.UNFENCED:
            if self.want_fence:
                return _Phase.MAY_STOP if self.want_shut_down else _Phase.FENCED
            if self.want_shut_down:
                return _Phase.LEAVING if _leads(view, broker) else _Phase.MAY_STOP
            return _Phase.UNFENCED
        heard = view.sessions.find(broker)
        if heard is None or heard.leaving_at is None or _leads(view, broker):
            return _Phase.LEAVING
        read = view.sessions.lowest_offset(view.state.brokers)
        return _Phase.MAY_STOP if heard.leaving_at <= read else _Phase.LEAVING

    def _left(self, view: MetadataView, broker: Broker) -> tuple[bytes, ...]:
        """Return the broker's directories without those it reports as offline."""
        if view.state.metadata_version < features.DIRECTORIES:
            return broker.directories
        return tuple(each for each in broker.directories if each not in self.offline_directories)

    def _directories(self, view: MetadataView, broker: Broker, left: tuple[bytes, ...]) -> Iterator[MetadataEntry]:
        """Take the replicas in failed directories out of their ISRs, and write the new lists of directories into the
        registration.
        """
        level = view.state.metadata_version
        if left != broker.directories:
            state = view.state
            lost = set(broker.directories).difference(left)
            held = [
                (topic_id, index)
                for topic_id, index in state.index.by_isr.get(broker.id, ())
                if state.topic_by_id[topic_id].partitions[index].directory(broker.id) in lost
            ]
            yield from Elections(view, leaving=broker.id).sweep(held)
            if left:  # an empty list in the record would mean "unchanged"
                change = journal.BrokerRegistrationChangeRecord(
                    broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=list(left)
                )
                yield MetadataEntry(change, 2)
        known = None if broker.cordoned is None else set(broker.cordoned)
        if level >= features.CORDONED and self.cordoned is not None and set(self.cordoned) != known:
            change = journal.BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(self.cordoned)
            )
            yield MetadataEntry(change, 3)


def _phase(broker: Broker) -> _Phase:
    if broker.fenced:
        return _Phase.FENCED
    return _Phase.LEAVING if broker.in_controlled_shutdown else _Phase.UNFENCED


def _leads(view: MetadataView, broker: Broker) -> bool:
    topics = view.state.topic_by_id
    return any(
        topics[topic_id].partitions[index].leader == broker.id
        for topic_id, index in view.state.index.by_isr.get(broker.id, ())
    )


def _turn(view: MetadataView, broker: Broker, then: _Phase) -> Iterator[MetadataEntry]:
    if then is _Phase.UNFENCED:
        yield from unfence(view, broker)
    elif then is _Phase.LEAVING:
        leaving = journal.BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
        )
        yield MetadataEntry(leaving, 1)
        yield from Elections(view, leaving=broker.id).sweep(view.state.index.by_isr.get(broker.id, ()))
    elif not broker.fenced:
        yield from fence(view, broker)
