"""RegisterBroker: a broker that starts or restarts gets an epoch; it is fenced at first.

A process that registers under an id whose session is still alive is refused: two processes must not be one broker. But
a session that a new controller merely presumed ends when a process with the same directories registers: it could not
have locked them if the former process were alive. So after a power loss the whole cluster is back at once. A new
incarnation is taken out of every ISR; if the former one did not stop cleanly it may have lost acknowledged records, so
it is taken out of every ELR, too (KIP-966). The same incarnation may register again to change its registration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.cluster import features
from ottla.cluster.decision import Deciding, gathered
from ottla.cluster.entities import FIRST_DIRECTORY, Broker
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.features import METADATA_VERSION, FeatureRange
from ottla.cluster.leader_election import Elections
from ottla.cluster.sessions import Gone, no_session
from ottla.cluster.snapshot import broker_entry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BrokerEpoch
from ottla.model.settings.controller import BROKER_SESSION_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class RegisterBroker:
    """Replies with the broker's epoch. `previous_epoch` is the epoch under which it last stopped cleanly, else -1."""

    broker: Broker
    previous_epoch: int = -1

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[BrokerEpoch]:
        level = view.state.metadata_version
        old = view.state.brokers.get(self.broker.id)
        again = old is not None and old.incarnation_id == self.broker.incarnation_id
        if old is not None and not again and _lives(view, old, self.broker, now_ms):
            raise ApiError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                "Another broker is registered with that broker id. If the broker was recently restarted this should "
                "self-resolve once the heartbeat manager expires the broker's session.",
            )
        _check(view, self.broker)
        broker = self.broker._replace(features=_checked_features(view, self.broker))
        if old is not None and again:
            broker = broker._replace(
                epoch=old.epoch, fenced=old.fenced, in_controlled_shutdown=old.in_controlled_shutdown
            )
            return Result([broker_entry(broker, level)], broker.epoch)
        broker = broker._replace(epoch=BrokerEpoch(view.next_offset()), fenced=True, in_controlled_shutdown=False)
        assert old is None or old.epoch < broker.epoch, f"broker {broker.id}: epoch {old.epoch} → {broker.epoch}"
        # The registration comes first: a broker that has read the journal up to its epoch, which is an offset, has read
        # its own registration.
        records = [broker_entry(broker, level)]
        clean = old is not None and old.epoch == self.previous_epoch
        clean = clean or level < features.ELIGIBLE_LEADERS
        records += yield from gathered(_without(view, broker.id, clean=clean))
        return Result(records, broker.epoch, timers=[no_session(broker.id)], notes=[Gone(broker.id)])


def _lives(view: MetadataView, old: Broker, new: Broker, now_ms: int) -> bool:
    """Whether a broker's former incarnation must be considered alive."""
    heard = view.sessions.find(old)
    if old.fenced or heard is None or (heard.presumed and not set(old.directories).isdisjoint(new.directories)):
        return False
    timeout_ms = view.defaults[BROKER_SESSION_TIMEOUT_MS]
    return heard.now_ms + timeout_ms >= now_ms


def _without(view: MetadataView, id: int, *, clean: bool) -> Iterator[MetadataEntry]:
    """Take the broker's former incarnation out of ISRs, and out of ELRs if it did not stop cleanly."""
    index = view.state.index
    if clean:
        yield from Elections(view, leaving=id).sweep(index.by_isr.get(id, ()))
    else:
        elections = Elections(view, lossy=id)
        yield from elections.sweep(index.by_isr.get(id, ()))
        yield from elections.sweep(index.by_elr.get(id, ()))


def _check(view: MetadataView, broker: Broker) -> None:
    if broker.id < 0:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, f"{broker.id} is no id of a broker")
    if view.state.metadata_version >= features.DIRECTORIES:
        _check_directories(view, broker)


def _check_directories(view: MetadataView, broker: Broker) -> None:
    problem = None
    directories = set(broker.directories)
    if not directories:
        problem = "No directories specified in request"
    elif min(directories) < FIRST_DIRECTORY:
        problem = "Reserved directory ID in request"
    elif len(directories) < len(broker.directories):
        problem = "Duplicate directory ID in request"
    for other in view.state.brokers.values():
        taken = directories.intersection(other.directories) if other.id != broker.id else ()
        if taken:
            problem = f"Broker {other.id} is already registered with directory {min(taken).hex()}"
    if problem:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, problem)


def _checked_features(view: MetadataView, broker: Broker) -> tuple[tuple[str, FeatureRange], ...]:
    """Refuse a broker that does not support the cluster's finalised features; return the features it listed."""
    listed = dict(broker.features)
    if METADATA_VERSION not in listed:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, f"Request features do not contain '{METADATA_VERSION}'")
    unlisted = {name: FeatureRange(0, 0) for name, level in view.state.features.items() if level and name not in listed}
    for name, (low, high) in {**listed, **unlisted}.items():
        level = view.state.features.get(name, 0)
        if name != features.KRAFT_VERSION and not low <= level <= high:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of {name}. The "
                f"broker wants a version between {low} and {high}, inclusive.",
            )
    return tuple(listed.items())
