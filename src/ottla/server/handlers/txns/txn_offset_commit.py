"""TxnOffsetCommit (key 28): commit offsets of a group as part of a producer's transaction.

v3 membership is checked   v4 TRANSACTION_ABORTABLE   v5 also adds the group's partition to the transaction (KIP-890)
"""

from __future__ import annotations

from ottla.groups.group import Committer
from ottla.groups.offsets.commit import CommitOffsets, NewOffset
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_group, on_topic, on_transaction
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer, Later
from ottla.wire.messages.txns.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

TopicAnswer = TxnOffsetCommitResponse.Topic
PartitionAnswer = TopicAnswer.Partition
Codes = dict[TopicPartition, ErrorCode]


@handles(
    TxnOffsetCommitRequest,
    needs=Needs(
        (on_transaction(AclOperation.WRITE), on_group(AclOperation.READ)),
        mirror="topics.partitions > topics.partitions",
        items=CheckedItems(on_topic(AclOperation.READ), "topics.partitions", "topics.partitions", order="first"),
    ),
    portions=Portions("topics.partitions", "topics.partitions", limits.OFFSETS_PER_SLICE),
)
def txn_offset_commit(request: TxnOffsetCommitRequest, context: Context) -> Answer[TxnOffsetCommitResponse]:
    if not request.group_id:
        return _refuse(request, ErrorCode.INVALID_GROUP_ID)
    if request.producer_id < 0:
        return _refuse(request, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    codes: Codes = {}
    offsets: list[NewOffset] = []
    for topic in request.topics:
        found = context.member.state.topics.get(topic.name)
        for partition in topic.partitions:
            where = TopicPartition(topic.name, partition.partition_index)
            if found is None or not 0 <= where.partition < len(found.partitions):
                codes[where] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            offsets.append(
                NewOffset(
                    where, partition.committed_offset, partition.committed_leader_epoch, partition.committed_metadata
                )
            )
    if not offsets:
        return _response(codes)
    return _commit(request, offsets, codes, context).soonest()


def _commit(
    request: TxnOffsetCommitRequest, offsets: list[NewOffset], codes: Codes, context: Context
) -> Later[TxnOffsetCommitResponse]:
    """Ask the transaction gate first, then commit the offsets in the group."""
    version = context.request_version
    response: Later[TxnOffsetCommitResponse] = Later()
    by = Committer(request.member_id, request.group_instance_id, request.generation_id, version, transactional=True)
    command = CommitOffsets(
        request.group_id,
        by,
        tuple(offsets),
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
    )

    def admitted(code: ErrorCode) -> None:
        if code == ErrorCode.NETWORK_EXCEPTION:
            # Clients do not expect NETWORK_EXCEPTION here; this error makes them retry at the same broker.
            response.set(_refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        elif code:
            response.set(_refuse(request, code))
        else:
            context.groups.submit(request.group_id, command).then(committed, response.fail)

    def committed(value: list[ErrorCode] | ApiError) -> None:
        if isinstance(value, ApiError):
            response.set(_refuse(request, value.code))
        else:
            codes.update((new.partition, code) for new, code in zip(offsets, value, strict=True))
            response.set(_response(codes))

    try:
        journal = TopicPartition(CONSUMER_OFFSETS_TOPIC, context.groups.coordinators.partition_of(request.group_id))
    except ApiError as error:
        admitted(error.code)
        return response
    gate = context.transactions.gate
    gate.admit_offsets(request.transactional_id, request.producer_id, request.producer_epoch, journal, version).then(
        admitted, response.fail
    )
    return response


def _response(codes: Codes) -> TxnOffsetCommitResponse:
    topics: dict[str, TopicAnswer] = {}
    for (name, index), code in codes.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = TopicAnswer(name=name, partitions=[])
        topic.partitions.append(PartitionAnswer(partition_index=index, error_code=code))
    return TxnOffsetCommitResponse(topics=list(topics.values()))


def _refuse(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    return _response(
        {
            TopicPartition(topic.name, partition.partition_index): code
            for topic in request.topics
            for partition in topic.partitions
        }
    )
