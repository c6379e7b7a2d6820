"""DescribeProducers (key 61): who writes idempotently or transactionally to a partition."""

from __future__ import annotations

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.portions import Portions
from ottla.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

TopicAnswer = DescribeProducersResponse.TopicResponse
PartitionAnswer = TopicAnswer.PartitionResponse


@handles(
    DescribeProducersRequest,
    portions=Portions("topics.partition_indexes", "topics.partitions", limits.PARTITIONS_OPENED_PER_SLICE),
)
def describe_producers(request: DescribeProducersRequest, context: Context) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicAnswer(
                name=topic.name,
                partitions=[_describe(topic.name, index, context) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, context: Context) -> PartitionAnswer:
    try:
        check_topic_name(topic)
        producers = context.partitions.find(topic, index).log.producer_states()
    except ApiError as error:
        return PartitionAnswer(
            partition_index=index, error_code=error.code, error_message=error.text, active_producers=[]
        )
    return PartitionAnswer(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=[
            PartitionAnswer.ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_first_offset,
            )
            for producer in producers
        ],
    )
