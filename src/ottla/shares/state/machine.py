"""The share coordinator's machine: commands decide on the state, snapshots and updates change it.

A snapshot is a share partition's whole state; updates change it; a snapshot without a value deletes it. The machine
tracks its offset in the journal, because the journal is pruned below the oldest snapshot that is still needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Never, TypeAlias, TypeVar

from ottla.machine.keyed import Entry, Marker
from ottla.machine.kit import ClockSet, Command, Loaded, OneByOne, Result
from ottla.shares.state import upkeep
from ottla.shares.state.batches import combine
from ottla.shares.state.partition import SharePartitionId, SharePartitionState, batches_of, of_snapshot
from ottla.shares.state.view import ShareStatesView
from ottla.wire.journal.share_state import ShareUpdateKey, ShareUpdateValue

ReplyT = TypeVar("ReplyT")
# Any command that a handler, a timer or an observer submits to the coordinator, with the type of its reply.
ShareStateCommand: TypeAlias = Command[ShareStatesView, Entry, ReplyT]


class SharesMachine(OneByOne):
    """The machine of one partition of `__share_group_state`."""

    def __init__(self, view: ShareStatesView) -> None:
        self.view = view

    def decide(self, command: ShareStateCommand[object] | Loaded, now_ms: int) -> Result[Entry, object]:
        if isinstance(command, Loaded):
            return upkeep.begin(self.view, now_ms)
        return command.decide(self.view, now_ms)

    def beginning(self) -> Iterator[Loaded]:
        yield Loaded()  # in one go: there is little work after loading

    def apply(self, record: Entry | Marker) -> Sequence[Never]:
        if isinstance(record, Marker):
            return ()
        state = self.view.state
        offset = state.journal_end if record.offset is None else record.offset
        state.journal_end = offset + 1
        id = SharePartitionId(record.key.group_id, record.key.topic_id, record.key.partition)
        before = state.partitions.get(id)
        if isinstance(record.key, ShareUpdateKey):
            if record.value is not None:
                state.partitions[id] = before.updated(record.value) if before else _first(record.value, offset)
        elif record.value is None:
            state.partitions.pop(id, None)
        else:
            state.partitions[id] = of_snapshot(record.value, before, offset)
        return ()

    def note(self, note: object) -> None:
        assert isinstance(note, ClockSet), f"the share coordinator has no state without records, but {note!r}"


def _first(value: ShareUpdateValue, offset: int) -> SharePartitionState:
    """Return the state from an update whose snapshot is missing, as far as the update contains it."""
    return SharePartitionState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=0,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=combine(batches_of(value), value.start_offset),
        created_ms=0,
        written_ms=0,
        highest_state_epoch=0,
        highest_leader_epoch=value.leader_epoch,
        updates=1,
        snapshot_at=offset,
    )
