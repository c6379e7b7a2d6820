"""DescribeLogDirs (key 35): size and lag of the replicas in each log directory of a broker.

v1   throttling happens after the answer
v2   flexible
v3   response + error_code
v4   response + total_bytes, usable_bytes
v5   response + is_cordoned

Ottla's own are tags that Kafka skips, answered only if the request asks for them: `with_sent_bytes` asks for
`sent_bytes`, and `rates_of_tenant` for the bytes per second that producers of a tenant's topics send to this broker and
consumers get from it.
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Float64, Int16, Int32, Int64, String


class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"], key=35, versions="1-5", flexible="2+"):
    class DescribableLogDirTopic(Struct):
        topic: String
        partitions: list[Int32]

    topics: list[DescribableLogDirTopic] | None
    with_sent_bytes: Bool = on("2+", False, tag=10_000)
    rates_of_tenant: String | None = on("2+", None, tag=10_001)


class DescribeLogDirsResponse(Response, key=35, versions="1-5", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = on("3+", 0)

    class Result(Struct):
        error_code: Int16
        log_dir: String

        class Topic(Struct):
            name: String

            class Partition(Struct):
                partition_index: Int32
                partition_size: Int64
                offset_lag: Int64
                is_future_key: Bool
                sent_bytes: Int64 = on("2+", -1, tag=10_000)

            partitions: list[Partition]

        topics: list[Topic]
        total_bytes: Int64 = on("4+", -1)
        usable_bytes: Int64 = on("4+", -1)
        is_cordoned: Bool = on("5+", False)

    results: list[Result]
    produced_byte_rate: Float64 = on("2+", -1.0, tag=10_001)
    consumed_byte_rate: Float64 = on("2+", -1.0, tag=10_002)
