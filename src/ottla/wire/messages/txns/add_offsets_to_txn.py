"""AddOffsetsToTxn (key 25): a group's offsets join a producer's transaction.

v1   throttling happens after the answer
v2   PRODUCER_FENCED possible
v3   flexible
v4   TRANSACTION_ABORTABLE possible (KIP-890)
"""

from __future__ import annotations

from ottla.wire.message import Request, Response
from ottla.wire.types import Int16, Int32, ProducerEpoch, ProducerId, String


class AddOffsetsToTxnRequest(Request["AddOffsetsToTxnResponse"], key=25, versions="0-4", flexible="3+"):
    transactional_id: String
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    group_id: String


class AddOffsetsToTxnResponse(Response, key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
