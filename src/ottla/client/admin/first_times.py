"""The timestamp of the first record in a range of offsets, for many partitions at once.

Rules:
- One small fetch serves all partitions of a broker. Partitions are fetched again until their first record has come.
- Every partition has its own outcome: None if the range has no records (any more).
- Records that retention deletes meanwhile are not a failure: the range then begins at the log start offset.
"""

from collections.abc import Mapping

from ottla.client.cluster import Cluster
from ottla.client.consumer.fetching import ConsumerFetcher, FetchCursor, Fetched, ReadOptions, decode_batch
from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.errors import OffsetOutOfRange, TopicRecreated
from ottla.client.outcomes import Outcomes
from ottla.model.ids import TopicPartition

_ONE_BATCH = ReadOptions(max_partition_bytes=1)  # a broker always returns at least one batch


async def first_times(
    cluster: Cluster, stretches: Mapping[TopicPartition, PartitionBounds]
) -> Outcomes[TopicPartition, int | None]:
    """Return the timestamp of the first record in each partition's range of offsets."""
    outcomes: Outcomes[TopicPartition, int | None] = Outcomes()
    left = {partition: FetchCursor(partition, start, end) for partition, (start, end) in stretches.items()}
    fetcher = ConsumerFetcher(cluster, _ONE_BATCH)
    try:
        while left:
            fetcher.start(left.values())
            await fetcher.wait()
            for fetched in fetcher.collect():
                partition = fetched.cursor.partition
                try:
                    time_ms = _first_time(fetched)
                except OffsetOutOfRange as error:
                    if isinstance(error, TopicRecreated) or error.start_offset <= error.offset:
                        outcomes.failed[partition] = error
                    else:
                        left[partition] = FetchCursor(partition, error.start_offset, fetched.cursor.end)
                except Exception as error:  # a failure in one partition's records must not affect the others
                    outcomes.failed[partition] = error
                else:
                    if time_ms is not None:
                        outcomes.found[partition] = time_ms
                if partition not in outcomes.failed and left[partition].done:
                    outcomes.found.setdefault(partition, None)
                if partition in outcomes.found or partition in outcomes.failed:
                    del left[partition]
    finally:
        await fetcher.close()
    return outcomes


def _first_time(fetched: Fetched) -> int | None:
    if fetched.error is not None:
        raise fetched.error
    for raw in fetched.batches:
        for record in decode_batch(raw):
            return record.timestamp
    return None
