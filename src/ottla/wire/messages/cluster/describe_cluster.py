"""DescribeCluster (key 60): id, controller and nodes of the cluster, without topics.

v1   controllers may be asked too; request + endpoint_type; response + endpoint_type
v2   fenced brokers may be shown; request + include_fenced_brokers; response + is_fenced
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int8, Int16, Int32, String


class DescribeClusterRequest(Request["DescribeClusterResponse"], key=60, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: Bool
    endpoint_type: Int8 = on("1+", 1)
    include_fenced_brokers: Bool = on("2+", False)


class DescribeClusterResponse(Response, key=60, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    endpoint_type: Int8 = on("1+", 1)
    cluster_id: String
    controller_id: Int32 = -1

    class Broker(Struct):
        broker_id: Int32
        host: String
        port: Int32
        rack: String | None = None
        is_fenced: Bool = on("2+", False)

    brokers: list[Broker]
    cluster_authorized_operations: Int32 = -0x80000000
