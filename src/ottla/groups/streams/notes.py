"""Notes of streams groups: soft state that is computed or requested again after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from ottla.groups.part import Apply
from ottla.groups.streams.configure import Configured
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.view import GroupsView


class GroupNote(Protocol):
    """A note about one group."""

    @property
    def group_id(self) -> str: ...


NoteT = TypeVar("NoteT", bound=GroupNote)


class ConfiguredNow(NamedTuple):
    """The topology was compared with the existing topics."""

    group_id: str
    configured: Configured


class Waiting(NamedTuple):
    """The first assignment waits for more members (`for_members`), or no longer."""

    group_id: str
    for_members: bool


class ShutdownAsked(NamedTuple):
    """A member requested a shutdown of the whole application."""

    group_id: str
    member_id: str


class EndpointsChanged(NamedTuple):
    """Members with endpoints own other tasks than before."""

    group_id: str


class CreationFailed(NamedTuple):
    """Internal topics could not be created; the errors, and when to retry."""

    group_id: str
    errors: tuple[tuple[str, str], ...]
    until_ms: int


def _configured(group: StreamsGroup, note: ConfiguredNow) -> None:
    group.configured = note.configured


def _waiting(group: StreamsGroup, note: Waiting) -> None:
    group.is_waiting_for_members = note.for_members


def _shutdown(group: StreamsGroup, note: ShutdownAsked) -> None:
    """Remember the first member that requested it."""
    if group.members:
        group.shutdown_by = group.shutdown_by or note.member_id


def _endpoints(group: StreamsGroup, note: EndpointsChanged) -> None:
    group.endpoint_epoch += 1


def _creation_failed(group: StreamsGroup, note: CreationFailed) -> None:
    group.creation_errors = {name: (text, note.until_ms) for name, text in note.errors}


def _on_group(change: Callable[[StreamsGroup, NoteT], None]) -> Callable[[GroupsView, NoteT], None]:
    def note(view: GroupsView, what: NoteT) -> None:
        group = view.state.groups.get(what.group_id)
        if isinstance(group, StreamsGroup):
            change(group, what)

    return note


NOTE: dict[type, Apply] = {
    ConfiguredNow: _on_group(_configured),
    Waiting: _on_group(_waiting),
    ShutdownAsked: _on_group(_shutdown),
    EndpointsChanged: _on_group(_endpoints),
    CreationFailed: _on_group(_creation_failed),
}
