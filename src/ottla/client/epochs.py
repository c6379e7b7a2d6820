"""Where a leader epoch ends in a log (OffsetForLeaderEpoch): whether what was read of a partition is still there.

An epoch belongs to one leader, and whatever it wrote below the high watermark is in the logs of all later leaders. If
they have less of an epoch than somebody read, an unclean election has put other records in its place (KIP-320).
"""

from collections.abc import Mapping

from ottla.client.cluster import Cluster
from ottla.client.errors import check, error_code
from ottla.model.ids import TopicPartition
from ottla.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

_CONSUMER = -1
_UNKNOWN = -1
_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic


async def epoch_ends(cluster: Cluster, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The offset behind the last record of this epoch, or of the last one before it, in each partition; none where the
    leader does not know."""
    ends: dict[TopicPartition, int] = {}

    async def attempt() -> dict[TopicPartition, int]:
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for partition in epochs:
            if partition not in ends:
                node_id, current_epoch = await cluster.leader(partition)
                by_leader.setdefault(node_id, {})[partition] = current_epoch
        for node_id, current_epochs in by_leader.items():
            await _ask(cluster, node_id, current_epochs, epochs, ends)
        return ends

    found = await cluster.retry(attempt, seeking=True)
    return {partition: end for partition, end in found.items() if end != _UNKNOWN}


async def _ask(
    cluster: Cluster,
    node_id: int,
    current_epochs: Mapping[TopicPartition, int],
    epochs: Mapping[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> None:
    topics: dict[str, _Topic] = {}
    for partition, current_epoch in current_epochs.items():
        topic = topics.setdefault(partition.topic, _Topic(topic=partition.topic, partitions=[]))
        topic.partitions.append(
            _Topic.OffsetForLeaderPartition(
                partition=partition.partition, current_leader_epoch=current_epoch, leader_epoch=epochs[partition]
            )
        )
    request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))
    answer = await cluster.ask_leader(node_id, topics, request, OffsetForLeaderEpochResponse)
    for result in answer.topics:
        for each in result.partitions:
            if error_code(each.error_code).retriable:
                cluster.metadata.forget(result.topic)
            check(each.error_code)
            ends[TopicPartition(result.topic, each.partition)] = each.end_offset
