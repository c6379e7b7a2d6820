"""EndTxn (key 26): commit or abort a transaction.

v1   throttling happens after the answer
v2   PRODUCER_FENCED possible
v3   flexible
v4   TRANSACTION_ABORTABLE possible (KIP-890)
v5   the producer's epoch grows with every end (KIP-890); response + producer_id, producer_epoch
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, on
from ottla.wire.types import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Bool,
    Int16,
    Int32,
    ProducerEpoch,
    ProducerId,
    String,
)


class EndTxnRequest(Request["EndTxnResponse"], key=26, versions="0-5", flexible="3+"):
    transactional_id: String
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    committed: Bool


class EndTxnResponse(Response, key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: ProducerId = on("5+", NO_PRODUCER_ID)
    producer_epoch: ProducerEpoch = on("5+", NO_PRODUCER_EPOCH)
