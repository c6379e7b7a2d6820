"""Commands that take leadership from a broker: fence it, end its session, unregister it. Fencing is always safe: it
costs only a change of leaders.

Heartbeats use `fence` and `unfence`, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from ottla.cluster.decision import Deciding, Decision, gathered
from ottla.cluster.entities import Broker
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.leader_election import Elections
from ottla.cluster.sessions import BrokerHeard, Gone, no_session, session_key
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result, Timer
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BrokerEpoch
from ottla.model.settings.controller import BROKER_SESSION_TIMEOUT_MS
from ottla.wire.journal import cluster_metadata as journal

_FENCE, _UNFENCE = 1, -1


def fence(view: MetadataView, broker: Broker) -> Iterator[MetadataEntry]:
    """Move the broker's leaderships to other replicas, then fence it."""
    yield from Elections(view, leaving=broker.id).sweep(view.state.index.by_isr.get(broker.id, ()))
    yield _fencing(broker, _FENCE)


def unfence(view: MetadataView, broker: Broker) -> Iterator[MetadataEntry]:
    """Unfence the broker and elect it for partitions without a leader; only replicas in `broker.directories` count."""
    yield _fencing(broker, _UNFENCE)
    brokers = {**view.state.brokers, broker.id: broker}
    yield from Elections(view, entering=broker.id, brokers=brokers).sweep(view.state.index.leaderless)


def _fencing(broker: Broker, change: int) -> MetadataEntry:
    return MetadataEntry(
        journal.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=change)
    )


def watch(view: MetadataView, broker: Broker, now_ms: int) -> Timer:
    """Return the timer that fences a broker whose heartbeats stop for broker.session.timeout.ms."""
    timeout_ms = view.defaults[BROKER_SESSION_TIMEOUT_MS]
    end_ms = now_ms + timeout_ms + 1
    return Timer(session_key(broker.id), end_ms, EndSession(broker.id, broker.epoch, end_ms))


class FenceBroker(NamedTuple):
    """Fence a broker. Nothing happens if it is fenced already, or has registered anew since. Replies whether it was
    fenced.
    """

    broker_id: int
    epoch: BrokerEpoch

    def decide(self, view: MetadataView, now_ms: int) -> Decision[bool]:
        broker = view.state.brokers.get(self.broker_id)
        if broker is None or broker.epoch != self.epoch or broker.fenced:
            return Result(reply=False)
        return self._fencing(view, broker)

    def _fencing(self, view: MetadataView, broker: Broker) -> Deciding[bool]:
        records = yield from gathered(fence(view, broker))
        return Result(records, True, timers=[no_session(broker.id)], notes=[Gone(broker.id)])


class EndSession(NamedTuple):
    """Fence a broker whose session ended at `end_ms` without a heartbeat.

    A controller that runs this far too late was suspended itself, and heartbeats may wait in its sockets: then the
    broker gets another session instead.
    """

    broker_id: int
    epoch: BrokerEpoch
    end_ms: int

    def decide(self, view: MetadataView, now_ms: int) -> Decision[bool | None]:
        broker = view.state.brokers.get(self.broker_id)
        timeout_ms = view.defaults[BROKER_SESSION_TIMEOUT_MS]
        if broker is not None and broker.epoch == self.epoch and now_ms - self.end_ms > timeout_ms // 2:
            heard = view.sessions.find(broker) or BrokerHeard(broker.id, broker.epoch, now_ms)
            return Result(timers=[watch(view, broker, now_ms)], notes=[heard._replace(now_ms=now_ms)])
        return FenceBroker(self.broker_id, self.epoch).decide(view, now_ms)


class UnregisterBroker(NamedTuple):
    """Remove a broker's registration from the cluster."""

    broker_id: int

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[None]:
        broker = view.state.brokers.get(self.broker_id)
        if broker is None:
            raise ApiError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {self.broker_id} is not currently registered"
            )
        elections, index = Elections(view, leaving=broker.id), view.state.index
        swept = chain(
            elections.sweep(index.by_isr.get(broker.id, ())), elections.sweep(index.by_elr.get(broker.id, ()))
        )
        records = yield from gathered(swept)
        gone = journal.UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
        return Result([*records, MetadataEntry(gone)], timers=[no_session(broker.id)], notes=[Gone(broker.id)])


def greet(view: MetadataView, now_ms: int) -> tuple[list[Timer], list[BrokerHeard]]:
    """A new controller gives every unfenced broker a whole session."""
    unfenced = [broker for broker in view.state.brokers.values() if not broker.fenced]
    return [watch(view, broker, now_ms) for broker in unfenced], [
        BrokerHeard(broker.id, broker.epoch, now_ms, presumed=True) for broker in unfenced
    ]
