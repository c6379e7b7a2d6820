"""The guard of AddPartitionsToTxn: brokers need CLUSTER_ACTION, clients WRITE on the transactional id and the topics.

If one topic is refused, no partition is added: the others get OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.errors import ErrorCode
from ottla.model.names import is_internal
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.guard.checks import decisions_of
from ottla.server.api.guard.many import with_allowed
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire.messages.txns.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    PartitionResult,
    TopicResult,
)

Request = AddPartitionsToTxnRequest
_FIRST_VERSION_OF_BROKERS = AddPartitionsToTxnRequest.since("transactions")


def guard(handler: Handler) -> Handler:
    def add_partitions(request: Request, context: Context) -> Answer[AddPartitionsToTxnResponse]:
        decisions = decisions_of(context)
        if context.request_version >= _FIRST_VERSION_OF_BROKERS:
            if decisions.allows_on_cluster(AclOperation.CLUSTER_ACTION):
                return handler(request, context)
            return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        id = request.v3_and_below_transactional_id
        if not decisions.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, id):
            return _refuse(request, lambda *_: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return with_allowed(
            dict.fromkeys(topic.name for topic in request.v3_and_below_topics),
            _may_write,
            lambda allowed: _answer(request, context, allowed, handler),
            context,
        )

    return add_partitions


def _may_write(decisions: Decisions, name: str) -> bool:
    return not is_internal(name) and decisions.allows(AclOperation.WRITE, AclResourceType.TOPIC, name)


def _answer(
    request: Request, context: Context, allowed: set[str], handler: Handler
) -> Answer[AddPartitionsToTxnResponse]:
    if all(topic.name in allowed for topic in request.v3_and_below_topics):
        return handler(request, context)
    known = context.member.state.topics

    def error(name: str, index: int) -> ErrorCode:
        if name not in allowed:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found = known.get(name)
        if found is None or not 0 <= index < len(found.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return _refuse(request, error)


def _refuse(request: Request, error: Callable[[str, int], ErrorCode]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            TopicResult(
                name=topic.name,
                results_by_partition=[
                    PartitionResult(partition_index=index, partition_error_code=error(topic.name, index))
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    )
