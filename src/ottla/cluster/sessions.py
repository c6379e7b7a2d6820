"""BrokerSessions: what the active controller knows of live brokers but does not write to the journal.

This is when a broker last sent a heartbeat, and how far it had read the metadata. A new active controller does not know
either and gives every broker a whole session from its own start, so no promise to a broker is broken.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.cluster.entities import Broker
from ottla.machine.kit import Timer
from ottla.model.ids import BrokerEpoch
from ottla.model.limits import INT64_MAX


class BrokerHeard(NamedTuple):
    """A note: the broker sent a heartbeat, having read the metadata up to and including `metadata_offset`."""

    broker_id: int
    epoch: BrokerEpoch
    now_ms: int
    metadata_offset: int = -1
    leaving_at: int | None = None  # the offset at which its controlled shutdown began
    presumed: bool = False  # no heartbeat yet since this controller took over


class Gone(NamedTuple):
    """A note: the broker has no session any more."""

    broker_id: int


class BrokerSessions:
    """Sessions by the broker's id. A session belongs to one registration: those of an older epoch are not found."""

    __slots__ = ("_sessions",)

    def __init__(self) -> None:
        self._sessions: dict[int, BrokerHeard] = {}

    def note(self, note: BrokerHeard | Gone) -> None:
        if isinstance(note, Gone):
            self._sessions.pop(note.broker_id, None)
        else:
            self._sessions[note.broker_id] = note

    def find(self, broker: Broker) -> BrokerHeard | None:
        found = self._sessions.get(broker.id)
        return found if found is not None and found.epoch == broker.epoch else None

    def lowest_offset(self, brokers: dict[int, Broker]) -> int:
        """Return the lowest metadata offset that the active brokers have read."""
        found = (self.find(broker) for broker in brokers.values() if broker.active)
        return min((session.metadata_offset for session in found if session is not None), default=INT64_MAX)


def session_key(broker_id: int) -> tuple[str, int]:
    """Return the key of the timer that ends a session."""
    return ("session", broker_id)


def no_session(broker_id: int) -> Timer:
    return Timer(session_key(broker_id), None)
