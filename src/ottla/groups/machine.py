"""The group coordinator's machine: commands decide on the state, entries and notes change it (see `machine/kit.py`).

Each kind of group is a package of its own that declares which entries and notes it applies and what it does for its
groups after loading (`PART`); this module only combines them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Never, TypeAlias, TypeVar

from ottla.groups.classic import registration as classic
from ottla.groups.consumer import registration as consumer
from ottla.groups.events import registration as events
from ottla.groups.events.observe import observed, refused
from ottla.groups.modern import topics_changed
from ottla.groups.offsets import registration as offsets
from ottla.groups.offsets.remove import expiry_timer
from ottla.groups.share import registration as share
from ottla.groups.streams import registration as streams
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry, Marker
from ottla.machine.kit import ClockSet, Command, Loaded, OneByOne, Result
from ottla.model import limits
from ottla.model.errors import ApiError

ReplyT = TypeVar("ReplyT")
# Any command that a handler, a timer or an observer submits to the coordinator, with the type of its reply.
GroupCommand: TypeAlias = Command[GroupsView, Entry, ReplyT]

_PARTS = (classic.PART, offsets.PART, topics_changed.PART, consumer.PART, share.PART, streams.PART, events.PART)
_APPLY = {kind: apply for part in _PARTS for kind, apply in part.apply.items()}
_NOTE = {kind: apply for part in _PARTS for kind, apply in part.note.items()}


class GroupsMachine(OneByOne):
    """The machine of one partition of `__consumer_offsets`."""

    def __init__(self, view: GroupsView) -> None:
        self.view = view

    def decide(self, command: GroupCommand[object] | Loaded, now_ms: int) -> Result[Entry, object]:
        if isinstance(command, Loaded):
            groups = list(islice(self.view.state.groups.values(), command.first, command.last))
            results = [part.loaded(self.view, groups, now_ms) for part in _PARTS]
            return Result(
                records=[entry for result in results for entry in result.records],
                timers=[
                    *(timer for result in results for timer in result.timers),
                    *(() if command.first else (expiry_timer(self.view, now_ms),)),
                ],
                notes=[note for result in results for note in result.notes],
                effects=[effect for result in results for effect in result.effects],
            )
        try:
            result = command.decide(self.view, now_ms)
        except ApiError as error:
            return refused(self.view, command, error, now_ms)
        return observed(self.view, command, result, now_ms)

    def beginning(self) -> Iterator[Loaded]:
        first = weight = 0
        for position, group in enumerate(self.view.state.groups.values(), 1):
            weight += 1 + len(group.members)
            if weight >= limits.MEMBERS_LOADED_AT_ONCE:
                yield Loaded(first, position)
                first, weight = position, 0
        yield Loaded(first)

    def apply(self, record: Entry | Marker) -> Sequence[Never]:
        apply = _APPLY.get(Marker if isinstance(record, Marker) else type(record.key))
        if apply is not None:
            apply(self.view, record)
        return ()

    def note(self, note: object) -> None:
        if not isinstance(note, ClockSet):  # timers follow the steady clock and need no change
            _NOTE[type(note)](self.view, note)
