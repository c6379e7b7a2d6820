"""DescribeProducers (key 61): the idempotent and transactional producers of a partition."""

from __future__ import annotations

from collections.abc import Generator

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name, topic_name_problem
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, Right, on_topic
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.records.describe_producers import DescribeProducersRequest, DescribeProducersResponse

TopicAnswer = DescribeProducersResponse.TopicResponse
PartitionAnswer = TopicAnswer.PartitionResponse


_READ = on_topic(AclOperation.READ)


def _right(topic: DescribeProducersRequest.TopicRequest) -> Right | None:
    """Return the right that a topic needs; one with an invalid name is refused for that."""
    return _READ if topic_name_problem(topic.name) is None else None


@handles(
    DescribeProducersRequest,
    needs=Needs(
        items=CheckedItems(
            _right,
            "topics.partition_indexes",
            "topics.partitions:partition_index",
            order="place",
            explained=True,
            rights=(_READ,),
        )
    ),
    portions=Portions("topics.partition_indexes", "topics.partitions", limits.PARTITIONS_OPENED_PER_SLICE),
)
def describe_producers(request: DescribeProducersRequest, context: Context) -> Answer[DescribeProducersResponse]:
    return context.runtime.slices.answer(_response(request, context))


def _response(request: DescribeProducersRequest, context: Context) -> Generator[None, None, DescribeProducersResponse]:
    topics = []
    for topic in request.topics:
        answer = TopicAnswer(name=topic.name, partitions=[])
        for index in topic.partition_indexes:
            answer.partitions.append((yield from _describe(topic.name, index, context)))
        topics.append(answer)
    return DescribeProducersResponse(topics=topics)


def _describe(topic: str, index: int, context: Context) -> Generator[None, None, PartitionAnswer]:
    try:
        check_topic_name(topic)
        producers = list(context.storage.partitions.find(topic, index).log.producer_states())
    except ApiError as error:
        return PartitionAnswer(
            partition_index=index, error_code=error.code, error_message=error.text, active_producers=[]
        )
    answer = PartitionAnswer(partition_index=index, error_code=ErrorCode.NONE, active_producers=[])
    for number, producer in enumerate(producers, 1):
        answer.active_producers.append(
            PartitionAnswer.ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_first_offset,
            )
        )
        if number % limits.PRODUCERS_DESCRIBED_PER_SLICE == 0:
            yield
    return answer
