"""DescribeClientQuotas (key 48): quotas that match a filter.

v1   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Float64, Int8, Int16, Int32, String


class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"], key=48, versions="0-1", flexible="1+"):
    class ComponentData(Struct):
        entity_type: String
        match_type: Int8
        match: String | None

    components: list[ComponentData]
    strict: Bool


class DescribeClientQuotasResponse(Response, key=48, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: String
            entity_name: String | None

        entity: list[EntityData]

        class ValueData(Struct):
            key: String
            value: Float64

        values: list[ValueData]

    entries: list[EntryData] | None
