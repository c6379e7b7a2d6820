"""The cluster machine: commands are decided on the state, records applied to it (see `machine/kit.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ottla.cluster.entities import Change
from ottla.cluster.entry import Entry
from ottla.cluster.sessions import Gone, Heard
from ottla.cluster.state import ClusterState
from ottla.cluster.view import View
from ottla.machine.kit import Result


class Command(Protocol):
    """Anything in `cluster/commands`."""

    def decide(self, view: View, now_ms: int) -> Result[Entry]: ...


class ClusterMachine:
    """Runs on the journal `__cluster_metadata`."""

    def __init__(self, view: View) -> None:
        self.view = view

    @property
    def state(self) -> ClusterState:
        return self.view.state

    def decide(self, command: Command, now_ms: int) -> Result[Entry]:
        return command.decide(self.view, now_ms)

    def apply(self, record: Entry) -> Sequence[Change]:
        return self.view.state.apply(record.record)

    def apply_all(self, records: Sequence[Entry]) -> Sequence[Change]:
        return self.view.state.apply_all(entry.record for entry in records)

    def note(self, note: Heard | Gone) -> None:
        self.view.sessions.note(note)
