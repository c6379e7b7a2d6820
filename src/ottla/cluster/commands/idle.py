"""By the clock: an empty record where nothing else was written (`metadata.max.idle.interval.ms`), as Kafka has it.

So the journal of a quorum never stands still, and who falls behind can be told from who has nothing to read. A sole
voter has nobody to show that to, and writes none: a node that is alone and idle leaves its disk alone.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result, Timer
from ottla.model.settings.controller import METADATA_MAX_IDLE_INTERVAL_MS
from ottla.wire.journal import cluster_metadata as journal


class WriteNoOp(NamedTuple):
    """`seen` is where the journal ended when this was last looked at."""

    seen: int

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry]:
        end = view.next_offset()
        records = [MetadataEntry(journal.NoOpRecord())] if end == self.seen else []
        return Result(records, timers=_next(view, now_ms, end + len(records)))


def idle(view: MetadataView, now_ms: int) -> list[Timer]:
    """What an active controller begins with."""
    return _next(view, now_ms, view.next_offset()) if len(view.quorum.voters) > 1 else []


def _next(view: MetadataView, now_ms: int, seen: int) -> list[Timer]:
    interval_ms = view.defaults[METADATA_MAX_IDLE_INTERVAL_MS]
    return [Timer("idle", now_ms + interval_ms, WriteNoOp(seen))] if interval_ms else []
