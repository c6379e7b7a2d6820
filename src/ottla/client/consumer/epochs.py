"""The end of a leader epoch in a log (OffsetForLeaderEpoch): tells whether records that were read are still there.

An epoch belongs to one leader, and all that this leader wrote below the high watermark is in the logs of all later
leaders. If a later leader's log has less of an epoch than a consumer read, an unclean election has replaced the records
(KIP-320).
"""

from collections.abc import Iterator, Mapping

from ottla.client.cluster import Cluster
from ottla.client.leaders import ask_leaders, ask_one
from ottla.client.outcomes import Outcomes
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.wire.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

_CONSUMER = -1
_UNKNOWN = -1
_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic


async def epoch_ends(
    cluster: Cluster, epochs: Mapping[TopicPartition, LeaderEpoch]
) -> Outcomes[TopicPartition, int | None]:
    """Return the offset behind the last record of this epoch, or of the last epoch before it, in each partition; None
    if the leader does not know.
    """

    async def ask(node_id: int, leads: Mapping[TopicPartition, LeaderEpoch]) -> Outcomes[TopicPartition, int | None]:
        return await _ask(cluster, node_id, {each: (epochs[each], current) for each, current in leads.items()})

    return await ask_leaders(cluster, epochs, ask)


async def _ask(
    cluster: Cluster, node_id: int, wanted: Mapping[TopicPartition, tuple[LeaderEpoch, LeaderEpoch]]
) -> Outcomes[TopicPartition, int | None]:
    topics: dict[str, _Topic] = {}
    for (name, index), (epoch, current_epoch) in wanted.items():
        topic = topics.setdefault(name, _Topic(topic=name, partitions=[]))
        topic.partitions.append(
            _Topic.OffsetForLeaderPartition(partition=index, current_leader_epoch=current_epoch, leader_epoch=epoch)
        )
    request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))
    return await ask_one(cluster, node_id, wanted, request, _told)


def _told(answer: OffsetForLeaderEpochResponse) -> Iterator[tuple[TopicPartition, int | None, int]]:
    for topic in answer.topics:
        for each in topic.partitions:
            end = None if each.end_offset == _UNKNOWN else each.end_offset
            yield TopicPartition(topic.topic, each.partition), end, each.error_code
