"""Produce requests from batches, and their answers by partition.

Topics are named by id since version 13; if the id of one is not known, because the broker is too old to return it, the
whole request uses names, in an older version.
"""

from typing import NamedTuple

from ottla.client.metadata import Metadata
from ottla.client.producer.accumulator import PartitionQueue, ProducerBatch
from ottla.client.producer.options import ProducerOptions
from ottla.model.ids import NO_ID
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse

_BY_ID_SINCE = ProduceRequest.TopicProduceData.since("topic_id")
TopicData = ProduceRequest.TopicProduceData
PartitionAnswer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse
Sent = list[tuple[PartitionQueue, ProducerBatch]]


class PreparedProduce(NamedTuple):
    """A Produce request, and the names of its topic ids."""

    message: ProduceRequest
    names: dict[bytes, str]

    def version_max(self, at_most: int | None) -> int | None:
        """Return the newest version that can carry the request; None: no limit."""
        return min(at_most or _BY_ID_SINCE, _BY_ID_SINCE - 1) if NO_ID in self.names else at_most

    def names_in(self, version: int) -> dict[bytes, str] | None:
        """Return the names of the topic ids in the answer; None in a version that has names."""
        return self.names if version >= _BY_ID_SINCE else None


def produce(sent: Sent, metadata: Metadata, options: ProducerOptions) -> PreparedProduce:
    """Return a request with these sealed batches."""
    topics: dict[str, TopicData] = {}
    names: dict[bytes, str] = {}
    for queue, batch in sent:
        name, index = queue.partition
        topic = topics.get(name)
        if topic is None:
            info = metadata.topics.get(name)
            topic_id = info.topic_id if info is not None else NO_ID
            topic = topics[name] = TopicData(name=name, topic_id=topic_id, partition_data=[])
            names[topic_id] = name
        assert batch.data is not None
        topic.partition_data.append(TopicData.PartitionProduceData(index=index, records=memoryview(batch.data)))
    message = ProduceRequest(
        transactional_id=options.transactional_id,
        acks=options.acknowledgements,
        timeout_ms=options.request_timeout_ms,
        topic_data=list(topics.values()),
    )
    return PreparedProduce(message, names)


def by_partition(
    reply: ProduceResponse, names: dict[bytes, str] | None
) -> dict[tuple[str | None, int], PartitionAnswer]:
    """Return the answer for each (topic, partition)."""
    return {
        (topic.name if names is None else names.get(topic.topic_id), each.index): each
        for topic in reply.responses
        for each in topic.partition_responses
    }
