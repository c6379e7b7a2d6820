"""AlterClientQuotas (key 49): set and remove quotas.

v1   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Float64, Int16, Int32, String


class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"], key=49, versions="0-1", flexible="1+"):
    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: String
            entity_name: String | None

        entity: list[EntityData]

        class OpData(Struct):
            key: String
            value: Float64
            remove: Bool

        ops: list[OpData]

    entries: list[EntryData]
    validate_only: Bool


class AlterClientQuotasResponse(Response, key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = 0

    class EntryData(Struct):
        error_code: Int16
        error_message: String | None

        class EntityData(Struct):
            entity_type: String
            entity_name: String | None

        entity: list[EntityData]

    entries: list[EntryData]
