"""AllocateProducerIds (key 67): allocate a block of producer ids to a broker."""

from __future__ import annotations

from ottla.cluster.commands.allocate_producer_ids import AllocateProducerIds
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.cluster.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def _refuse(_: AllocateProducerIdsRequest, error: ApiError) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error.code, producer_id_start=0, producer_id_len=0)


@handles(
    AllocateProducerIdsRequest, needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)), on="controller", refuse=_refuse
)
def allocate_producer_ids(
    request: AllocateProducerIdsRequest, context: Context
) -> Decided[AllocateProducerIdsResponse]:
    return context.member.controller.ask(
        AllocateProducerIds(request.broker_id, request.broker_epoch),
        lambda block: AllocateProducerIdsResponse(
            error_code=ErrorCode.NONE, producer_id_start=block.first, producer_id_len=block.size
        ),
    )
