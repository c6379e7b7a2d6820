"""DescribeCluster (key 60): the cluster id, the brokers or controllers, and the controller id.

v1 the endpoint type: brokers (1) or controllers (2)   v2 fenced brokers if asked for
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api.advertised_brokers import listed_brokers, some_broker
from ottla.server.api.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, Operations, on_cluster
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2
_NAMES = {_BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}


@handles(
    DescribeClusterRequest,
    needs=Needs(
        on_controllers=(on_cluster(AclOperation.ALTER),),
        explained=True,
        unnoted="it describes",
        asks=(on_cluster(AclOperation.DESCRIBE),),
        operations=(Operations(AclResourceType.CLUSTER, "", "", "cluster_authorized_operations"),),
    ),
    on="both",
)
def describe_cluster(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    if request.endpoint_type not in _NAMES:
        return _refuse(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    here = _CONTROLLERS if context.connection.controller else _BROKERS
    if request.endpoint_type != here:
        return _refuse(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"The request was sent to an endpoint of type {_NAMES[here]}, "
            f"but we wanted an endpoint of type {_NAMES[request.endpoint_type]}",
        )
    controllers = here == _CONTROLLERS
    return DescribeClusterResponse(
        error_code=0,
        endpoint_type=here,
        cluster_id=context.cluster_id,
        controller_id=context.member.quorum.leader_id if controllers else some_broker(context),
        brokers=_controllers(context) if controllers else _brokers(context, request.include_fenced_brokers),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _brokers(context: Context, fenced: bool) -> list[DescribeClusterResponse.Broker]:
    return [
        DescribeClusterResponse.Broker(
            broker_id=broker.id, host=host, port=port, rack=broker.rack, is_fenced=broker.fenced
        )
        for broker, host, port in listed_brokers(context, fenced=fenced)
    ]


def _controllers(context: Context) -> list[DescribeClusterResponse.Broker]:
    """Return the controllers that have the listener by which the request came."""
    listener = context.connection.listener
    return [
        DescribeClusterResponse.Broker(broker_id=controller.id, host=end.host, port=end.port, rack=None)
        for controller in context.member.state.controllers.values()
        for end in controller.endpoints
        if end.name == listener
    ]


def _refuse(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message, cluster_id="", brokers=[])
