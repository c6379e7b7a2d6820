"""GroupsPart: what one kind of group, or the offsets, add to the group coordinator's machine (`groups/machine.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ottla.groups.group import Group
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result

# Applies one type of entry, marker or note to the state.
Apply: TypeAlias = Callable[[GroupsView, Any], None]
OnLoaded: TypeAlias = Callable[[GroupsView, Sequence[Group], int], Result[Entry, None]]


def _nothing_to_do(view: GroupsView, groups: Sequence[Group], now_ms: int) -> Result[Entry, None]:
    return Result()


class GroupsPart(NamedTuple):
    """`apply` has the appliers of entries by the class of their key, and of markers; `note` those of notes by their
    class. `loaded` decides what to do for groups after loading.
    """

    apply: Mapping[type, Apply]
    note: Mapping[type, Apply]
    loaded: OnLoaded = _nothing_to_do
