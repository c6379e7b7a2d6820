"""Turn: the effects of one command on one group, collected step by step into a Result.

A command reads the group as it is and then takes steps that each replace `turn.group`, set timers and answer parked
requests; nothing takes effect until the runner carries out the Result.

A member's waiting request is parked under ("join" | "sync", group, member). If the member sends it again while the
first one waits (after its connection broke), the new request replaces the first, which is answered with an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar, cast

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Answer, Command, Parked, Result, Timer
from ottla.model.errors import ErrorCode

ReplyT_co = TypeVar("ReplyT_co", covariant=True)
JOIN = "join"
SYNC = "sync"
Token = tuple[str, str, str]


class JoinReply(NamedTuple):
    """The answer to JoinGroup; the leader of a generation gets the list of all members, the others none."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[tuple[str, str | None, bytes], ...] = ()  # member id, instance id, metadata


class SyncReply(NamedTuple):
    """The answer to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class Became(NamedTuple):
    """A note: this is the group's new state."""

    group: ClassicGroup


class Turn(Generic[ReplyT_co]):
    """One command's turn. `reply` may be set at any step; the last value counts."""

    def __init__(self, view: GroupsView, group: ClassicGroup, now_ms: int) -> None:
        self.view = view
        self.group = group
        self.now_ms = now_ms
        self.records: list[Entry] = []
        self._before = group
        self.reply: ReplyT_co | Parked | None = None
        self._waits: Token | None = None  # the token of the request being decided, while it is parked
        self._answers: list[Answer] = []
        self._timers: list[Timer] = []

    # --- the group

    def become(self, state: ClassicState) -> None:
        self.group = replace(self.group.to(state), state_since_ms=self.now_ms)

    def set_member(self, member: ClassicMember) -> None:
        self.group = self.group.with_member(member)

    def remove(self, *gone: str) -> None:
        """Remove members for whatever reason; answer their waiting requests with UNKNOWN_MEMBER_ID."""
        for member_id in gone:
            member = self.group.members.get(member_id)
            if member is not None:
                if member.is_awaiting_join:
                    self.answer_join(member_id, JoinReply(ErrorCode.UNKNOWN_MEMBER_ID))
                if member.is_awaiting_sync:
                    self.answer_sync(member_id, SyncReply(ErrorCode.UNKNOWN_MEMBER_ID))
            self.cancel(self.session_key(member_id))
        self.group = self.group.without(gone)

    # --- replies

    def wait(self, kind: str, member_id: str) -> None:
        """Park the request being decided, unless a later step answers it."""
        self._waits = (kind, self.group.group_id, member_id)
        self.reply = Parked(self._waits)

    def answer_join(self, member_id: str, reply: JoinReply) -> None:
        self._answer((JOIN, self.group.group_id, member_id), reply)

    def answer_sync(self, member_id: str, reply: SyncReply) -> None:
        self._answer((SYNC, self.group.group_id, member_id), reply)

    def _answer(self, token: Token, value: JoinReply | SyncReply) -> None:
        if token == self._waits:
            self._waits = None
            self.reply = cast("ReplyT_co", value)  # of the kind that this request waits for
        else:
            self._answers.append(Answer(token, value))

    # --- timers

    def session_key(self, member_id: str) -> tuple[str, ...]:
        return ("session", self.group.group_id, member_id)

    def join_key(self) -> tuple[str, ...]:
        return ("join phase", self.group.group_id)

    def sync_key(self) -> tuple[str, ...]:
        return ("sync phase", self.group.group_id)

    def after(self, key: tuple[str, ...], delay_ms: int, command: Command[GroupsView, Entry, object]) -> None:
        self._timers.append(Timer(key, self.now_ms + delay_ms, command))

    def cancel(self, key: tuple[str, ...]) -> None:
        self._timers.append(Timer(key, None))

    def result(self) -> Result[Entry, ReplyT_co]:
        self._check()
        changed = self.group is not self._before or bool(self.records)
        return Result(
            records=self.records,
            reply=self.reply,
            timers=self._timers,
            answers=self._answers,
            notes=(Became(self.group),) if changed else (),
        )

    def _check(self) -> None:
        """Assert what every later command relies on; a leader that the journal named may be unknown."""
        group, before = self.group, self._before
        assert group.generation >= before.generation, f"{group.group_id}: {before.generation} → {group.generation}"
        assert not (group.is_empty and group.members), f"{group.group_id} is empty, but has members"
        assert group.leader in group.members or group.leader in (None, before.leader), f"{group.leader} is no member"
