"""InitProducerId (key 22): give an idempotent or transactional producer its id and epoch, fencing older ones.

v1   throttling happens after the answer
v2   flexible
v3   a producer may bring its id and epoch (KIP-360); request + producer_id, producer_epoch
v4   PRODUCER_FENCED possible
v5   TRANSACTION_ABORTABLE possible (KIP-890)
v6   two-phase commit (KIP-939); request + enable_2pc, keep_prepared_txn; response + ongoing_txn_producer_id,
     ongoing_txn_producer_epoch
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, on
from ottla.wire.types import Bool, Int16, Int32, Int64, String


class InitProducerIdRequest(Request, key=22, versions="0-6", flexible="2+", latest_unstable=True):
    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: Int64 = on("3+", -1)
    producer_epoch: Int16 = on("3+", -1)
    enable_2pc: Bool = on("6+", False)
    keep_prepared_txn: Bool = on("6+", False)


class InitProducerIdResponse(Response, key=22, versions="0-6", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
    ongoing_txn_producer_id: Int64 = on("6+", -1)
    ongoing_txn_producer_epoch: Int16 = on("6+", -1)
