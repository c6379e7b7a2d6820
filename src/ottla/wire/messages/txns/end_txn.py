"""EndTxn (key 26): commit or abort a transaction.

v1   throttling happens after the answer
v2   PRODUCER_FENCED possible
v3   flexible
v4   TRANSACTION_ABORTABLE possible (KIP-890)
v5   the producer's epoch grows with every end (KIP-890); response + producer_id, producer_epoch
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, on
from ottla.wire.types import Bool, Int16, Int32, Int64, String


class EndTxnRequest(Request, key=26, versions="0-5", flexible="3+"):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Response, key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = on("5+", -1)
    producer_epoch: Int16 = on("5+", -1)
