"""The guard of InitProducerId: WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster, or WRITE on
any topic.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.guard.checks import decisions_of
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def guard(handler: Handler) -> Handler:
    def init_producer_id(request: InitProducerIdRequest, context: Context) -> Answer[InitProducerIdResponse]:
        error = _refused(request, decisions_of(context))
        if error is None:
            return handler(request, context)
        return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)

    return init_producer_id


def _refused(request: InitProducerIdRequest, decisions: Decisions) -> ErrorCode | None:
    id = request.transactional_id
    if id is None:
        is_allowed = decisions.suffices_on_cluster(AclOperation.IDEMPOTENT_WRITE) or decisions.allows_some(
            AclOperation.WRITE, AclResourceType.TOPIC
        )
        # Asked again where both are missing, so that the audit log has the refusal that the client is told.
        is_allowed = is_allowed or decisions.allows_on_cluster(AclOperation.IDEMPOTENT_WRITE)
        return None if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    needed = [AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT] if request.enable_2pc else [AclOperation.WRITE]
    if all(decisions.allows(each, AclResourceType.TRANSACTIONAL_ID, id) for each in needed):
        return None
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
