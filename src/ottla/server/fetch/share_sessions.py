"""Share sessions (KIP-932): which partitions a member of a share group reads here, remembered between its requests.

Epoch 0 opens a session (and replaces the member's old one), 1, 2, … continue it, -1 closes it. A session belongs to a
connection: when that is lost the session is, and what its member had is given back to the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.session_epochs import FINAL_EPOCH
from ottla.server.fetch.sessions import Session, SessionTable

Named = tuple[bytes, int]  # a topic's id and a partition
Member = tuple[str, str]  # a group's id and a member's


class ShareSession(Session[Member, Named, bool]):
    """What is remembered of a partition: whether the next answer has to name it although there are no records of it.
    That is so of one that was added since the session was opened, or had an error the last time.
    """

    __slots__ = ("group_id", "member_id")

    def __init__(self, group_id: str, member_id: str, partitions: Iterable[Named]) -> None:
        super().__init__((group_id, member_id))
        self.group_id = group_id
        self.member_id = member_id
        self.partitions = dict.fromkeys(islice(partitions, limits.SHARE_SESSION_PARTITIONS_MAX), False)

    def change(self, added: Iterable[Named], forgotten: Iterable[Named]) -> None:
        """Reads these too, and those no more; more than anybody needs are not remembered."""
        for named in added:
            if len(self.partitions) >= limits.SHARE_SESSION_PARTITIONS_MAX:
                break
            self.partitions.setdefault(named, True)
        for named in forgotten:
            self.partitions.pop(named, None)

    def must_name(self, named: Named) -> bool:
        """Whether the answer that is being made has to name a partition without records; the next has not."""
        due = self.partitions.get(named, False)
        if due:
            self.partitions[named] = False
        return due

    def name_again(self, named: Named) -> None:
        """The next answer names it, so that the member learns that the error is over."""
        if named in self.partitions:
            self.partitions[named] = True

    def in_turn(self) -> list[Named]:
        """Its partitions, beginning with another one each time, so that all get their share of a small answer."""
        named = list(self.partitions)
        first = self.epoch % len(named) if named else 0
        return named[first:] + named[:first]


class ShareSessions(SessionTable[Member, ShareSession]):
    not_found = ErrorCode.SHARE_SESSION_NOT_FOUND
    wrong_epoch = ErrorCode.INVALID_SHARE_SESSION_EPOCH

    def __init__(self, max_sessions: Callable[[], int], on_end: Callable[[ShareSession], None]) -> None:
        """`on_end` is told of sessions that end without a request of their member."""
        super().__init__()
        self._max_sessions = max_sessions
        self._on_end = on_end
        self._per_group: dict[str, int] = {}

    def has_group(self, group_id: str) -> bool:
        return group_id in self._per_group

    def open(self, group_id: str, member_id: str, partitions: Iterable[Named]) -> ShareSession:
        """A new session; the member's old one ends, but what the member has stays with it."""
        key = group_id, member_id
        if key in self._sessions:
            self.drop(key)
        elif len(self._sessions) >= self._max_sessions():
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(group_id, member_id, partitions)
        self._per_group[group_id] = self._per_group.get(group_id, 0) + 1
        return session

    def enter(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a request that continues or (-1) closes it."""
        session = self.find((group_id, member_id), epoch)
        if epoch != FINAL_EPOCH:
            self.continued(session.key)
        return session

    def close(self, session: ShareSession) -> None:
        """At the member's wish."""
        if self._sessions.get(session.key) is session:
            self.drop(session.key)

    def lost(self, session: ShareSession) -> None:
        """Its connection is gone."""
        if self._sessions.get(session.key) is session:
            self.drop(session.key)
            self._on_end(session)

    def left(self, session: ShareSession) -> None:
        self._per_group[session.group_id] -= 1
        if not self._per_group[session.group_id]:
            del self._per_group[session.group_id]
