"""Sessions: the partitions of a reader, remembered between its requests, so that each request names only changes.

Sessions of consumers and followers (`fetch_sessions.py`, KIP-227) and of members of share groups (`share_sessions.py`,
KIP-932) have this shape in common: a table of sessions by some key, an epoch that each request has to continue, and the
partitions that are added, changed and forgotten on the way. They differ in the data kept per partition and in what
happens when a table is full.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Generic, Protocol, TypeVar

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.session_epochs import FINAL_EPOCH, INITIAL_EPOCH, next_epoch

PartitionKeyT = TypeVar("PartitionKeyT", bound=tuple[str | bytes, int])
RememberedT = TypeVar("RememberedT")
KeyT = TypeVar("KeyT", bound=Hashable)
SessionT = TypeVar("SessionT", bound="TabledSession")


class TabledSession(Protocol):
    """The part of a session that its table needs."""

    epoch: int

    def close(self) -> None: ...


class Session(Generic[KeyT, PartitionKeyT, RememberedT]):
    """The partitions of one reader. `key` is its key in the table, `epoch` that of the next request."""

    __slots__ = ("epoch", "key", "partitions")

    def __init__(self, key: KeyT) -> None:
        self.key = key
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[PartitionKeyT, RememberedT] = {}

    def close(self) -> None:
        """Release resources; called when the session has left the table."""


class SessionTable(Generic[KeyT, SessionT]):
    """The sessions of one kind; the session that was used longest ago comes first."""

    not_found: ClassVar[ErrorCode]
    wrong_epoch: ClassVar[ErrorCode]

    def __init__(self) -> None:
        self._sessions: dict[KeyT, SessionT] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: KeyT, epoch: int) -> SessionT:
        """Return the session that a request of this epoch continues or ends."""
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(self.not_found)
        if epoch not in (FINAL_EPOCH, session.epoch):
            raise ApiError(self.wrong_epoch)
        return session

    def continued(self, key: KeyT) -> None:
        """Advance the epoch, because a request of the session's epoch was accepted."""
        session = self._sessions.pop(key)
        self._sessions[key] = session
        session.epoch = next_epoch(session.epoch)

    def drop(self, key: KeyT) -> None:
        """End a session, if there is one."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self.left(session)
            session.close()

    def left(self, session: SessionT) -> None:
        """Handle the removal of a session from the table."""
