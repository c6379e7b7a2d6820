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


class InitProducerIdRequest(
    Request["InitProducerIdResponse"], key=22, versions="0-6", flexible="2+", latest_unstable=True
):
    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: ProducerId = on("3+", NO_PRODUCER_ID)
    producer_epoch: ProducerEpoch = on("3+", NO_PRODUCER_EPOCH)
    enable_2pc: Bool = on("6+", False)
    keep_prepared_txn: Bool = on("6+", False)


class InitProducerIdResponse(Response, key=22, versions="0-6", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch
    ongoing_txn_producer_id: ProducerId = on("6+", NO_PRODUCER_ID)
    ongoing_txn_producer_epoch: ProducerEpoch = on("6+", NO_PRODUCER_EPOCH)
