"""Periodic NoOp records in an idle journal (`metadata.max.idle.interval.ms`), as Kafka writes them.

With them the journal of a quorum never stands still, so a node that falls behind differs from one that has nothing to
read. A sole voter has no followers and writes none: an idle single node leaves its disk alone.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result, Timer
from ottla.model.settings.controller import METADATA_MAX_IDLE_INTERVAL_MS
from ottla.wire.journal import cluster_metadata as journal


class WriteNoOp(NamedTuple):
    """Write a NoOp record if the journal still ends at `seen`, its end at the last check."""

    seen: int

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, None]:
        end = view.next_offset()
        records = [MetadataEntry(journal.NoOpRecord())] if end == self.seen else []
        return Result(records, timers=_next(view, now_ms, end + len(records)))


def idle(view: MetadataView, now_ms: int) -> list[Timer]:
    """Return the first timer of an active controller, if it has other voters."""
    return _next(view, now_ms, view.next_offset()) if len(view.quorum.voters) > 1 else []


def _next(view: MetadataView, now_ms: int, seen: int) -> list[Timer]:
    interval_ms = view.defaults[METADATA_MAX_IDLE_INTERVAL_MS]
    return [Timer("idle", now_ms + interval_ms, WriteNoOp(seen))] if interval_ms else []
