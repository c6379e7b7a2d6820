"""GroupDraft: the effects of one command on one group, collected step by step into a Result.

Nothing takes effect until the runner carries out the Result. Each kind of group adds its own steps.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Answer, Command, Result, Timer
from ottla.model.setting import Setting

T = TypeVar("T")
ReplyT = TypeVar("ReplyT")


class DraftedGroup(Protocol):
    @property
    def group_id(self) -> str: ...


GroupT = TypeVar("GroupT", bound=DraftedGroup)


class GroupDraft(Generic[GroupT]):
    """One command's draft. `group` is the group before the command."""

    def __init__(self, view: GroupsView, group: GroupT, now_ms: int) -> None:
        self.view = view
        self.group = group
        self.now_ms = now_ms
        self.records: list[Entry] = []
        self.notes: list[object] = []
        self.timers: list[Timer] = []
        self.answers: list[Answer] = []
        self.effects: list[object] = []

    def setting(self, setting: Setting[T]) -> T:
        return self.view.group(self.group.group_id)[setting]

    def result(self, reply: ReplyT) -> Result[Entry, ReplyT]:
        return Result(self.records, reply, self.timers, self.answers, self.notes, self.effects)

    def after(self, key: tuple[str, ...], delay_ms: int, command: Command[GroupsView, Entry, object]) -> None:
        self.timers.append(Timer(key, self.now_ms + delay_ms, command))

    def cancel(self, key: tuple[str, ...]) -> None:
        self.timers.append(Timer(key, None))
