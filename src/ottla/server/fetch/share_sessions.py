"""Share sessions (KIP-932): the partitions of a member of a share group, remembered between its requests.

Epoch 0 opens a session (and replaces the member's old one), 1, 2, … continue it, -1 closes it. A session belongs to a
connection: when the connection is lost the session ends, and the records that its member acquired are released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.session_epochs import FINAL_EPOCH
from ottla.server.fetch.sessions import Session, SessionTable

Named = tuple[bytes, int]  # (topic id, partition)
Member = tuple[str, str]  # (group id, member id)


class ShareSession(Session[Member, Named, bool]):
    """The value kept per partition is whether the next answer has to name it even without records: because it was added
    since the session was opened, or had an error the last time.
    """

    __slots__ = ("group_id", "member_id")

    def __init__(self, group_id: str, member_id: str, partitions: Iterable[Named]) -> None:
        super().__init__((group_id, member_id))
        self.group_id = group_id
        self.member_id = member_id
        self.partitions = dict.fromkeys(islice(partitions, limits.SHARE_SESSION_PARTITIONS_MAX), False)

    def change(self, added: Iterable[Named], forgotten: Iterable[Named]) -> None:
        """Add and remove partitions, up to a bound."""
        for named in added:
            if len(self.partitions) >= limits.SHARE_SESSION_PARTITIONS_MAX:
                break
            self.partitions.setdefault(named, True)
        for named in forgotten:
            self.partitions.pop(named, None)

    def must_name(self, named: Named) -> bool:
        """Return whether the current answer has to name the partition even without records; later answers need not."""
        due = self.partitions.get(named, False)
        if due:
            self.partitions[named] = False
        return due

    def name_again(self, named: Named) -> None:
        """Name the partition in the next answer, so that the member learns that the error is over."""
        if named in self.partitions:
            self.partitions[named] = True

    def in_turn(self) -> list[Named]:
        """Return the partitions, starting with another one each time, so that all get their share of a small answer."""
        named = list(self.partitions)
        first = self.epoch % len(named) if named else 0
        return named[first:] + named[:first]


class ShareSessions(SessionTable[Member, ShareSession]):
    not_found = ErrorCode.SHARE_SESSION_NOT_FOUND
    wrong_epoch = ErrorCode.INVALID_SHARE_SESSION_EPOCH

    def __init__(self, max_sessions: Callable[[], int], on_end: Callable[[ShareSession], None]) -> None:
        """`on_end` is called with a session that ends without a request of its member."""
        super().__init__()
        self._max_sessions = max_sessions
        self._on_end = on_end
        self._per_group: dict[str, int] = {}

    def has_group(self, group_id: str) -> bool:
        return group_id in self._per_group

    def open(self, group_id: str, member_id: str, partitions: Iterable[Named]) -> ShareSession:
        """Open a session; the member's old one ends, but the records that the member acquired stay acquired."""
        key = group_id, member_id
        if key in self._sessions:
            self.drop(key)
        elif len(self._sessions) >= self._max_sessions():
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(group_id, member_id, partitions)
        self._per_group[group_id] = self._per_group.get(group_id, 0) + 1
        return session

    def enter(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """Return the session of a request that continues or (-1) closes it."""
        session = self.find((group_id, member_id), epoch)
        if epoch != FINAL_EPOCH:
            self.continued(session.key)
        return session

    def close(self, session: ShareSession) -> None:
        """End the session at the member's request."""
        if self._sessions.get(session.key) is session:
            self.drop(session.key)

    def lost(self, session: ShareSession) -> None:
        """End the session, because its connection is lost."""
        if self._sessions.get(session.key) is session:
            self.drop(session.key)
            self._on_end(session)

    def left(self, session: ShareSession) -> None:
        self._per_group[session.group_id] -= 1
        if not self._per_group[session.group_id]:
            del self._per_group[session.group_id]
