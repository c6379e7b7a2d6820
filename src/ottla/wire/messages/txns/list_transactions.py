"""ListTransactions (key 66): the transactional ids a coordinator holds.

v1   a minimum age may be asked for; request + duration_filter
v2   transactional ids by pattern; request + transactional_id_pattern
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int16, Int32, Int64, ProducerId, String


class ListTransactionsRequest(Request["ListTransactionsResponse"], key=66, versions="0-2", flexible="0+"):
    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Int64 = on("1+", -1)
    transactional_id_pattern: String | None = on("2+", None)


class ListTransactionsResponse(Response, key=66, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    unknown_state_filters: list[String]

    class TransactionState(Struct):
        transactional_id: String
        producer_id: ProducerId
        transaction_state: String

    transaction_states: list[TransactionState]
