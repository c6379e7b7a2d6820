"""The common parts of fetch responses to consumers and followers: one partition, the whole response, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.cluster.entities import Broker
from ottla.cluster.leadership import leader_of
from ottla.cluster.state import ClusterState
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER_EPOCH, NO_ID, BrokerEpoch
from ottla.replica.partition import READ_COMMITTED, Partition, PartitionFetch
from ottla.server.fetch.fetch_sessions import AskedPartition, PartitionData
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

TopicData = FetchResponse.FetchableTopicResponse
# Returns the brokers that a client can reach, with their addresses on its listener.
Reachable = Callable[[], list[tuple[Broker, str, int]]]

FIRST_VERSION_BY_ID = FetchRequest.Topic.since("topic_id")
FIRST_VERSION_WITH_REPLICA_STATE = FetchRequest.since("replica_state")
FIRST_VERSION_WITH_LEADER = FetchResponse.since("node_endpoints")
# Consumers up to this version do not know KAFKA_STORAGE_ERROR; as in Kafka, they get NOT_LEADER_OR_FOLLOWER.
LAST_VERSION_WITHOUT_STORAGE_ERROR = 5
_ANOTHER_LEADS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def replica_of(request: FetchRequest, version: int) -> tuple[int, BrokerEpoch]:
    """Return (id, broker epoch) of the follower that fetches; a negative id means a consumer."""
    if version >= FIRST_VERSION_WITH_REPLICA_STATE:
        return request.replica_state.replica_id, request.replica_state.replica_epoch
    return request.replica_id, NO_BROKER_EPOCH


def told(index: int, fetched: PartitionFetch, isolation: int) -> PartitionData:
    data = PartitionData(
        partition_index=index,
        error_code=0,
        high_watermark=fetched.high_watermark,
        last_stable_offset=fetched.last_stable_offset,
        log_start_offset=fetched.log_start_offset,
        aborted_transactions=[
            PartitionData.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in fetched.aborted
        ]
        if isolation == READ_COMMITTED
        else None,
        records=fetched.records if fetched.records is not None else b"",
    )
    if fetched.diverging is not None:
        data.diverging_epoch.epoch, data.diverging_epoch.end_offset = fetched.diverging
    return data


def nothing_yet(index: int, partition: Partition, isolation: int) -> PartitionData:
    """Return an answer without records, with the offsets of the partition."""
    watermarks = partition.high_watermark, partition.last_stable_offset, partition.log.log_start_offset
    return told(index, PartitionFetch(None, *watermarks, [], None), isolation)


def refusal(
    index: int, code: ErrorCode, aborted: list[PartitionData.AbortedTransaction] | None = None
) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=aborted, records=b""
    )


def refuse_all(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """Return the same error for every partition of a request."""
    topics = [
        TopicData(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[refusal(ask.partition, code, []) for ask in topic.partitions],
        )
        for topic in request.topics
    ]
    return FetchResponse(error_code=code, responses=topics)


def whole(
    found: Iterable[tuple[AskedPartition, PartitionData]],
    by_id: bool,
    session_id: int,
    version: int,
    state: Callable[[], ClusterState],
    reachable: Reachable | None = None,
) -> FetchResponse:
    """Return the response; `reachable` is None for followers, which know the addresses of other brokers."""
    topics: list[TopicData] = []
    last: str | bytes | None = None
    failed = False
    for asked, data in found:
        failed = failed or data.error_code != 0
        if asked.topic != last:
            last = asked.topic
            name, topic_id = ("", last) if by_id else (last, NO_ID)
            topics.append(TopicData(topic=name, topic_id=topic_id, partitions=[]))  # type: ignore[arg-type]
        topics[-1].partitions.append(data)
    response = FetchResponse(responses=topics, session_id=session_id)
    if failed:
        _explain(response, by_id, version, state(), reachable)
    return response


def _explain(
    response: FetchResponse, by_id: bool, version: int, state: ClusterState, reachable: Reachable | None
) -> None:
    """Replace errors that a client of this version does not know, and name the leader of a partition (KIP-951) if the
    client assumed another one.
    """
    leaders: set[int] = set()
    for topic in response.responses:
        for data in topic.partitions:
            if data.error_code == ErrorCode.KAFKA_STORAGE_ERROR and version <= LAST_VERSION_WITHOUT_STORAGE_ERROR:
                data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif data.error_code in _ANOTHER_LEADS and version >= FIRST_VERSION_WITH_LEADER:
                leader = leader_of(state, topic.topic_id if by_id else topic.topic, data.partition_index)
                if leader is not None:
                    data.current_leader.leader_id, data.current_leader.leader_epoch = leader
                    leaders.add(leader.id)
    if leaders and reachable is not None:
        response.node_endpoints = [
            FetchResponse.NodeEndpoint(node_id=broker.id, host=host, port=port, rack=broker.rack)
            for broker, host, port in reachable()
            if broker.id in leaders
        ]
