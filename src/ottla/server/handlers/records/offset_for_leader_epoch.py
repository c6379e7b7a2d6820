"""OffsetForLeaderEpoch (key 23): the end offset of a leader epoch; clients and followers detect truncation with it."""

from __future__ import annotations

from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_cluster, on_topic
from ottla.server.api.portions import Portions
from ottla.wire.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

TopicAnswer = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
EpochAnswer = TopicAnswer.EpochEndOffset


@handles(
    OffsetForLeaderEpochRequest,
    needs=Needs(
        items=CheckedItems(
            on_topic(AclOperation.DESCRIBE, "topic"),
            "topics.partitions",
            "topics.partitions",
            unless=on_cluster(AclOperation.CLUSTER_ACTION),
        )
    ),
    portions=Portions("topics.partitions", "topics.partitions", limits.PARTITIONS_OPENED_PER_SLICE),
)
def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, context: Context) -> OffsetForLeaderEpochResponse:
    topics = []
    for topic in request.topics:
        answers = []
        for ask in topic.partitions:
            try:
                partition = context.storage.partitions.find(topic.topic, ask.partition)
                epoch, end_offset = partition.epoch_end_offset(
                    ask.leader_epoch, current_leader_epoch=ask.current_leader_epoch
                )
                answers.append(
                    EpochAnswer(error_code=0, partition=ask.partition, leader_epoch=epoch, end_offset=end_offset)
                )
            except ApiError as error:
                answers.append(EpochAnswer(error_code=error.code, partition=ask.partition))
        topics.append(TopicAnswer(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)
