"""BrokerRegistration (key 62): a broker introduces itself to the controller and gets its epoch.

v1   brokers on their way from ZooKeeper; request + is_migrating_zk_broker
v2   log directories (KIP-858); request + log_dirs
v3   previous broker epoch (KIP-966); request + previous_broker_epoch
v4   features with minimum level 0 are shown
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_BROKER_EPOCH, Bool, BrokerEpoch, Int16, Int32, String, UInt16, Uuid


class BrokerRegistrationRequest(Request["BrokerRegistrationResponse"], key=62, versions="0-4", flexible="0+"):
    broker_id: Int32
    cluster_id: String
    incarnation_id: Uuid

    class Listener(Struct):
        name: String
        host: String
        port: UInt16
        security_protocol: Int16

    listeners: list[Listener]

    class Feature(Struct):
        name: String
        min_supported_version: Int16
        max_supported_version: Int16

    features: list[Feature]
    rack: String | None
    is_migrating_zk_broker: Bool = on("1+", False)
    log_dirs: list[Uuid] = on("2+", [])
    previous_broker_epoch: BrokerEpoch = on("3+", NO_BROKER_EPOCH)


class BrokerRegistrationResponse(Response, key=62, versions="0-4", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
