"""The cluster machine: decides commands on the cluster's state and applies records to it (see `machine/kit.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from ottla.cluster.decision import Deciding, Decision, gathered
from ottla.cluster.entities import Change
from ottla.cluster.entry import MetadataEntry, encode
from ottla.cluster.sessions import BrokerHeard, Gone
from ottla.cluster.stages import in_stages
from ottla.cluster.state import ClusterState
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.machine.stepped import Steps, finished
from ottla.model.limits import METADATA_RECORDS_PER_SLICE

ReplyT = TypeVar("ReplyT")
ReplyT_co = TypeVar("ReplyT_co", covariant=True)


class ClusterCommand(Protocol[ReplyT_co]):
    """Any command of `cluster/commands`, with the type of its reply."""

    def decide(self, view: MetadataView, now_ms: int) -> Decision[ReplyT_co]: ...


class ClusterMachine:
    """The machine of the journal `__cluster_metadata`."""

    def __init__(self, view: MetadataView) -> None:
        self.view = view

    @property
    def state(self) -> ClusterState:
        return self.view.state

    def decide(self, command: ClusterCommand[ReplyT], now_ms: int) -> Result[MetadataEntry, ReplyT]:
        return finished(command.decide(self.view, now_ms))

    def deciding(self, command: ClusterCommand[ReplyT], now_ms: int) -> Deciding[ReplyT]:
        offset = self.view.next_offset()
        decided = command.decide(self.view, now_ms)
        result = decided if isinstance(decided, Result) else (yield from decided)
        if len(result.records) > METADATA_RECORDS_PER_SLICE:
            written = (entry._replace(value=encode(entry)) for entry in result.records)
            result = result._replace(records=(yield from gathered(written)))
        # raft wrote a record meanwhile, and the decision may contain offsets (broker epochs)
        if self.view.next_offset() != offset:
            return self.decide(command, now_ms)
        return result

    def apply(self, record: MetadataEntry) -> Sequence[Change]:
        return self.view.state.apply(record.record)

    def apply_all(self, records: Sequence[MetadataEntry]) -> Sequence[Change]:
        return self.view.state.apply_all(entry.record for entry in records)

    def applying(self, records: Sequence[MetadataEntry]) -> Steps[list[Change]]:
        changes: list[Change] = []
        for number, some in enumerate(in_stages(self.view.state, [entry.record for entry in records])):
            if number:
                yield
            changes.extend(some)
        return changes

    def note(self, note: object) -> None:
        assert isinstance(note, BrokerHeard | Gone), f"the cluster has no such note: {note!r}"
        self.view.sessions.note(note)
