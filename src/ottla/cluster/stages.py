"""Stages: apply very many records to a state in slices, without showing readers a part of a topic.

Most records can be applied one by one. But when a topic is created or grows, its partitions must appear all at once,
with the settings it was created with: their states are prepared in slices, invisible to readers, and added together.
Everything else (such as new leaders of thousands of partitions) changes slice by slice, as if it had been written in
several groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ottla.cluster.entities import Change, PartitionState
from ottla.cluster.state import ClusterState
from ottla.model.limits import METADATA_RECORDS_PER_SLICE
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.message import Data

# Records that belong to the topic of the record before them.
_OF_THE_TOPIC_BEFORE = (journal.PartitionRecord, journal.ConfigRecord)


def in_stages(state: ClusterState, records: Iterable[Data]) -> Iterator[list[Change]]:
    """Apply the records; after each slice yield its changes, an empty list if the slice only prepared partitions."""
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


def _end_of_stage(records: Sequence[Data], at: int) -> int:
    end = min(at + METADATA_RECORDS_PER_SLICE, len(records))
    while end < len(records) and isinstance(records[end], _OF_THE_TOPIC_BEFORE):
        end += 1
    return end
