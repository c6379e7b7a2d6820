"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids."""

from __future__ import annotations

from ottla.wire.message import Request, Response
from ottla.wire.types import NO_BROKER_EPOCH, BrokerEpoch, Int16, Int32, Int64


class AllocateProducerIdsRequest(Request["AllocateProducerIdsResponse"], key=67, versions="0", flexible="0+"):
    broker_id: Int32
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH


class AllocateProducerIdsResponse(Response, key=67, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id_start: Int64
    producer_id_len: Int32
