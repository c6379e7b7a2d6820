"""Stages: very many records are applied to a state some at a time, and who reads it meanwhile sees no half of a topic.

What a record changes stands alone, but for a topic that is made or grows: its partitions are there all at once, with
the settings it was made with. They are made ready in slices, unseen, and taken in together. Everything else (the
leaders of thousands of partitions, say) changes slice by slice, as if it had been written in as many groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ottla.cluster.entities import Change, PartitionState
from ottla.cluster.state import ClusterState
from ottla.model.limits import METADATA_RECORDS_PER_SLICE
from ottla.wire.journal import cluster_metadata as journal

# These belong to the topic that was named before them.
_OF_THE_TOPIC_BEFORE = (journal.PartitionRecord, journal.ConfigRecord)


def in_stages(state: ClusterState, records: Iterable[Any]) -> Iterator[list[Change]]:
    """Applies the records. After each slice it yields what that changed: nothing if it only made something ready."""
    effective = state.effective(records)
    at = 0
    while at < len(effective):
        end = _end_of_stage(effective, at)
        stage = effective if end - at == len(effective) else effective[at:end]
        made: dict[int, PartitionState] = {}
        if end - at > 2 * METADATA_RECORDS_PER_SLICE:
            for place, record in enumerate(stage):
                if type(record) is journal.PartitionRecord:
                    made[place] = state.new_partition(record)
                if (place + 1) % METADATA_RECORDS_PER_SLICE == 0:
                    yield []
        yield state.apply_effective(stage, made)
        at = end


def _end_of_stage(records: Sequence[Any], at: int) -> int:
    end = min(at + METADATA_RECORDS_PER_SLICE, len(records))
    while end < len(records) and isinstance(records[end], _OF_THE_TOPIC_BEFORE):
        end += 1
    return end
