"""Metadata (key 3): which brokers there are, which topics, who leads their partitions.

v1 controller, internal topics   v4 no auto-creation on wish   v8 authorized operations   v10 topic ids   v12 by id

Every broker tells the address under which the client reached this node, unless `advertised.listeners` says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cluster.commands.create_topics import CreateTopics, NewTopic, TopicOutcome
from ottla.cluster.entities import PartitionState, Topic
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.names import is_internal, topic_name_problem
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.internal_topics import new_topic
from ottla.server.nodes import listed_brokers
from ottla.server.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

TopicAsk = MetadataRequest.Topic
TopicAnswer = MetadataResponse.Topic
PartitionAnswer = TopicAnswer.Partition

_FIRST_WITH_IDS = 12  # versions 10 and 11 have the field, but an id there was never answered


@handles(MetadataRequest)
def metadata(request: MetadataRequest, context: Context) -> MetadataResponse:
    version = context.request_version
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    # In version 0 an empty list meant all topics; since then that is null.
    if request.topics is None or (version == 0 and not request.topics):
        topics = _describe(context.metadata.state.topics.values(), context, operations)
    elif _is_malformed(request.topics, version):
        return MetadataResponse(
            brokers=[],
            topics=[
                _missing(ErrorCode.INVALID_REQUEST, topic.name or "", topic_id=topic.topic_id)
                for topic in request.topics
            ],
        )
    else:
        topics = _named(request.topics, request.allow_auto_topic_creation, context, operations)
    return MetadataResponse(
        brokers=[
            MetadataResponse.Broker(node_id=broker.id, host=host, port=port, rack=broker.rack)
            for broker, host, port in listed_brokers(context)
        ],
        cluster_id=context.cluster_id,
        controller_id=context.node_id,
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _is_malformed(topics: list[TopicAsk], version: int) -> bool:
    if version < _FIRST_WITH_IDS:
        return any(topic.name is None or topic.topic_id != NO_ID for topic in topics)
    return any(topic.name is None and topic.topic_id == NO_ID for topic in topics)


def _named(topics: list[TopicAsk], may_create: bool, context: Context, operations: int) -> list[TopicAnswer]:
    state = context.metadata.state
    ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != NO_ID)
    if ids:  # one id makes it a request by ids; names beside them are ignored, as Kafka does
        unknown = [_missing(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id=id) for id in ids if id not in state.topic_by_id]
        known = [state.topic_by_id[id] for id in ids if id in state.topic_by_id]
        return unknown + _describe(known, context, operations)
    names = dict.fromkeys(topic.name for topic in topics if topic.name is not None)
    missing = [name for name in names if name not in state.topics]
    problems: dict[str, ErrorCode] = {}
    if missing and may_create and context.settings.get("auto.create.topics.enable"):
        problems = _create(missing, context)
    answers = _describe([state.topics[name] for name in names if name in state.topics], context, operations)
    for name in missing:
        if name not in state.topics:
            invalid = topic_name_problem(name) is not None
            code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answers.append(_missing(problems.get(name, code), name, operations=operations))
    return answers


def _create(names: Iterable[str], context: Context) -> dict[str, ErrorCode]:
    """Create what may be created; a Kafka client asks again until the topic is there, ours is there at once."""
    brokers = len(context.metadata.state.brokers)
    topics: list[NewTopic] = [
        new_topic(name, context.settings, brokers) for name in names if topic_name_problem(name) is None
    ]
    if not topics:
        return {}
    try:
        outcomes: list[TopicOutcome] = context.metadata.submit(CreateTopics(tuple(topics)))
    except ApiError as error:
        return {topic.name: error.code for topic in topics}
    return {outcome.name: outcome.error.code for outcome in outcomes if outcome.error is not None}


def _missing(code: ErrorCode, name: str | None, *, topic_id: bytes = NO_ID, operations: int = NOT_ASKED) -> TopicAnswer:
    return TopicAnswer(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
        partitions=[],
        topic_authorized_operations=operations,
    )


def _describe(topics: Iterable[Topic], context: Context, operations: int) -> list[TopicAnswer]:
    brokers = context.metadata.state.brokers
    alive = {id for id, broker in brokers.items() if not broker.fenced}
    return [
        TopicAnswer(
            error_code=0,
            name=topic.name,
            topic_id=topic.id,
            is_internal=is_internal(topic.name),
            partitions=[_partition(state, alive) for state in topic.partitions],
            topic_authorized_operations=operations,
        )
        for topic in topics
    ]


def _partition(state: PartitionState, alive: set[int]) -> PartitionAnswer:
    led = state.leader in alive
    return PartitionAnswer(
        error_code=0 if led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=state.index,
        leader_id=state.leader if led else -1,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        offline_replicas=[id for id in state.replicas if id not in alive],
    )
