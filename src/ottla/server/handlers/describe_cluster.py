"""DescribeCluster (key 60): the brokers, and who is asked about the cluster.

v1 the endpoint type: brokers (1) or controllers (2)   v2 fenced brokers on wish
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.nodes import listed_brokers
from ottla.server.operations import CLUSTER_OPERATIONS, NOT_ASKED
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2


@handles(DescribeClusterRequest, on="both")
def describe_cluster(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        return _refuse(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        return _refuse(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    return DescribeClusterResponse(
        error_code=0,
        cluster_id=context.cluster_id,
        controller_id=context.node_id,
        brokers=[
            DescribeClusterResponse.Broker(
                broker_id=broker.id, host=host, port=port, rack=broker.rack, is_fenced=broker.fenced
            )
            for broker, host, port in listed_brokers(context, fenced=request.include_fenced_brokers)
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _refuse(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message, cluster_id="", brokers=[])
