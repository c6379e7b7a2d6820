"""Metadata (key 3): the brokers, the topics, and the leaders of their partitions.

v1 controller, internal topics   v4 optional auto-creation   v8 authorized operations   v10 topic ids   v12 by id

A single node returns the address by which the client reached it, unless `advertised.listeners` is set. Brokers of a
cluster are returned as registered. Any broker forwards requests to the controller, so any of them is returned as the
controller, as with Kafka.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from ottla.cluster.entities import PartitionState, Topic
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.names import is_internal, topic_name_problem
from ottla.model.settings.node import AUTO_CREATE_TOPICS_ENABLE
from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api.advertised_brokers import ListenerView, listed_brokers, some_broker
from ottla.server.api.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.server.api.changes.names import shown
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.metadata_request import is_by_id, is_for_all, is_malformed, without_ignored_names
from ottla.server.api.needs import Needs, Operations, on_cluster, on_topic
from ottla.server.api.portions import Portions, in_portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse

TopicAsk = MetadataRequest.Topic
TopicAnswer = MetadataResponse.Topic
PartitionAnswer = TopicAnswer.Partition

_FIRST_WITH_LISTENERS = 6  # older versions have no error for a leader without the client's listener
_FIRST_WITH_IDS = 12  # versions 10 and 11 have the field, but Kafka never answered an id there


@handles(
    MetadataRequest,
    needs=Needs(
        guard="metadata",
        unnoted="the topics that it has created are noted when they are",
        asks=(
            on_topic(AclOperation.DESCRIBE),
            on_cluster(AclOperation.CREATE),
            on_topic(AclOperation.CREATE),
            on_cluster(AclOperation.DESCRIBE),
        ),
        operations=(
            Operations(AclResourceType.TOPIC, "topics", "name", "topic_authorized_operations"),
            Operations(AclResourceType.CLUSTER, "", "", "cluster_authorized_operations"),
        ),
    ),
)
def metadata(request: MetadataRequest, context: Context) -> Answer[MetadataResponse]:
    if is_malformed(request, context.request_version):  # the whole of it, however it is divided
        return _malformed_in_portions(request, context)
    request = without_ignored_names(request)
    if request.topics is not None and len(request.topics) > limits.ITEMS_PER_SLICE:
        # Each topic once over all portions: a topic with thousands of partitions must not be in every one of them.
        request.topics = list({(topic.name, topic.topic_id): topic for topic in request.topics}.values())
    return _metadata_in_portions(request, context)


def _metadata(request: MetadataRequest, context: Context) -> Answer[MetadataResponse]:
    version = context.request_version
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    if request.topics is None or is_for_all(request, version):
        return _respond(request, [], tuple(context.member.state.topics.values()), [], context, operations)
    if is_by_id(request):
        return _respond(request, *_by_id(request.topics, context), [], context, operations)
    names = list(dict.fromkeys(topic.name for topic in request.topics if topic.name is not None))
    missing = [name for name in names if name not in context.member.state.topics]
    answer = _respond(request, [], *_by_name(names, context, operations), context, operations)
    if missing and request.allow_auto_topic_creation and context.settings[AUTO_CREATE_TOPICS_ENABLE]:
        # As with Kafka, the answer says that the topics do not exist yet; the client asks again and finds them.
        _create(missing, context)
    return answer


def _malformed(request: MetadataRequest, context: Context) -> MetadataResponse:
    return MetadataResponse(
        brokers=[],
        topics=[
            _missing(ErrorCode.INVALID_REQUEST, topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ],
    )


_PORTIONS = Portions("topics", "topics", limits.ITEMS_PER_SLICE)
_metadata_in_portions = in_portions(_PORTIONS, _metadata)
_malformed_in_portions = in_portions(_PORTIONS, _malformed)


def _respond(
    request: MetadataRequest,
    before: list[TopicAnswer],
    known: Sequence[Topic],
    behind: list[TopicAnswer],
    context: Context,
    operations: int,
) -> Answer[MetadataResponse]:
    """Describe known topics in slices, between the answers for unknown ones."""
    steps = _describing(known, context, operations)
    return context.runtime.slices.answer(_responding(request, before, steps, behind, context))


def _responding(
    request: MetadataRequest,
    before: list[TopicAnswer],
    steps: Generator[None, None, list[TopicAnswer]],
    behind: list[TopicAnswer],
    context: Context,
) -> Generator[None, None, MetadataResponse]:
    topics = before + (yield from steps) + behind
    brokers = listed_brokers(context)
    return MetadataResponse(
        brokers=[
            MetadataResponse.Broker(node_id=broker.id, host=host, port=port, rack=broker.rack)
            for broker, host, port in brokers
        ],
        cluster_id=context.cluster_id,
        controller_id=some_broker(context),
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _by_id(topics: list[TopicAsk], context: Context) -> tuple[list[TopicAnswer], list[Topic]]:
    """Find topics by id: one id makes it a request by ids, and names beside them are ignored, as with Kafka."""
    known = context.member.state.topic_by_id
    ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != NO_ID)
    unknown = [_missing(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id=id) for id in ids if id not in known]
    return unknown, [known[id] for id in ids if id in known]


def _by_name(names: list[str], context: Context, operations: int) -> tuple[list[Topic], list[TopicAnswer]]:
    known = context.member.state.topics
    unknown = []
    for name in names:
        if name not in known:
            invalid = topic_name_problem(name) is not None
            code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            unknown.append(_missing(code, name, operations=operations))
    return [known[name] for name in names if name in known], unknown


def _create(names: Iterable[str], context: Context) -> None:
    """Have missing topics with valid names created. As with Kafka, failures are only logged."""
    valid = [name for name in names if topic_name_problem(name) is None]
    context.member.create_missing(valid)
    if valid and context.is_audited:
        context.note_change(MetadataRequest.name, shown(iter(valid)))


def _missing(code: ErrorCode, name: str | None, *, topic_id: bytes = NO_ID, operations: int = NOT_ASKED) -> TopicAnswer:
    return TopicAnswer(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
        partitions=[],
        topic_authorized_operations=operations,
    )


def _describing(topics: Sequence[Topic], context: Context, operations: int) -> Generator[None, None, list[TopicAnswer]]:
    """Describe the topics; yield after each slice of partitions."""
    version = context.request_version
    view = ListenerView.of(context)
    partition = _partition if version else _partition_in_version_0
    no_listener = ErrorCode.LISTENER_NOT_FOUND if version >= _FIRST_WITH_LISTENERS else ErrorCode.LEADER_NOT_AVAILABLE
    answers = []
    left = limits.PARTITIONS_DESCRIBED_PER_SLICE
    for topic in topics:
        answer = TopicAnswer(
            error_code=0,
            name=topic.name,
            topic_id=topic.id,
            is_internal=is_internal(topic.name),
            partitions=[],
            topic_authorized_operations=operations,
        )
        answers.append(answer)
        states, at = topic.partitions, 0
        left -= 1
        while at < len(states):
            if left <= 0:
                yield
                left = limits.PARTITIONS_DESCRIBED_PER_SLICE
            some = states[at : at + left]
            answer.partitions += [partition(state, view, no_listener) for state in some]
            at += len(some)
            left -= len(some)
    return answers


def _partition(state: PartitionState, view: ListenerView, no_listener: ErrorCode) -> PartitionAnswer:
    led = state.leader in view.reachable
    code = ErrorCode.NONE if led else no_listener if state.leader in view.alive else ErrorCode.LEADER_NOT_AVAILABLE
    return PartitionAnswer(
        error_code=code,
        partition_index=state.index,
        leader_id=state.leader if led else -1,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        offline_replicas=view.offline(state),
    )


def _partition_in_version_0(state: PartitionState, view: ListenerView, no_listener: ErrorCode) -> PartitionAnswer:
    """Leave out brokers that are not in the response, because clients of that time did not expect them."""
    answer = _partition(state, view, no_listener)
    answer.replica_nodes = [id for id in state.replicas if id in view.reachable]
    answer.isr_nodes = [id for id in state.isr if id in view.reachable]
    is_complete = len(answer.replica_nodes) == len(state.replicas) and len(answer.isr_nodes) == len(state.isr)
    if not answer.error_code and not is_complete:
        answer.error_code = ErrorCode.REPLICA_NOT_AVAILABLE
    return answer
