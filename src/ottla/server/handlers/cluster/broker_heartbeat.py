"""BrokerHeartbeat (key 63): a broker reports that it is alive, and asks to be fenced, unfenced or shut down."""

from __future__ import annotations

from ottla.cluster.commands.heartbeat import BrokerHeartbeat
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.cluster.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


def _refuse(_: BrokerHeartbeatRequest, error: ApiError) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=error.code, should_shut_down=False)


@handles(
    BrokerHeartbeatRequest, needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)), on="controller", refuse=_refuse
)
def broker_heartbeat(request: BrokerHeartbeatRequest, context: Context) -> Decided[BrokerHeartbeatResponse]:
    context.member.liveness.heard(request.broker_id, request.broker_epoch, context.when_closed)
    command = BrokerHeartbeat(
        request.broker_id,
        request.broker_epoch,
        request.current_metadata_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        offline_directories=tuple(request.offline_log_dirs),
        cordoned=None if request.cordoned_log_dirs is None else tuple(request.cordoned_log_dirs),
    )
    return context.member.controller.ask(
        command,
        lambda reply: BrokerHeartbeatResponse(
            error_code=ErrorCode.NONE,
            is_caught_up=reply.caught_up,
            is_fenced=reply.fenced,
            should_shut_down=reply.should_shut_down,
        ),
    )
