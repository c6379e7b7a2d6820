"""The APIs by key, and their message classes, which are imported on first use."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import cast

from ottla.wire.message import Request, Response

# The APIs by the folder of their messages (`wire/messages`) and of their handlers (`server/handlers`).
APIS: dict[str, dict[int, str]] = {
    "records": {
        0: "Produce",
        1: "Fetch",
        2: "ListOffsets",
        21: "DeleteRecords",
        23: "OffsetForLeaderEpoch",
        61: "DescribeProducers",
        30001: "OttlaDescribeSegments",
    },
    "topics": {
        3: "Metadata",
        19: "CreateTopics",
        20: "DeleteTopics",
        32: "DescribeConfigs",
        33: "AlterConfigs",
        34: "AlterReplicaLogDirs",
        35: "DescribeLogDirs",
        37: "CreatePartitions",
        43: "ElectLeaders",
        44: "IncrementalAlterConfigs",
        45: "AlterPartitionReassignments",
        46: "ListPartitionReassignments",
        74: "ListConfigResources",
        75: "DescribeTopicPartitions",
    },
    "groups": {
        8: "OffsetCommit",
        9: "OffsetFetch",
        10: "FindCoordinator",
        11: "JoinGroup",
        12: "Heartbeat",
        13: "LeaveGroup",
        14: "SyncGroup",
        15: "DescribeGroups",
        16: "ListGroups",
        42: "DeleteGroups",
        47: "OffsetDelete",
        68: "ConsumerGroupHeartbeat",
        69: "ConsumerGroupDescribe",
        88: "StreamsGroupHeartbeat",
        89: "StreamsGroupDescribe",
        30000: "OttlaDescribeGroupEvents",
    },
    "shares": {
        76: "ShareGroupHeartbeat",
        77: "ShareGroupDescribe",
        78: "ShareFetch",
        79: "ShareAcknowledge",
        83: "InitializeShareGroupState",
        84: "ReadShareGroupState",
        85: "WriteShareGroupState",
        86: "DeleteShareGroupState",
        87: "ReadShareGroupStateSummary",
        90: "DescribeShareGroupOffsets",
        91: "AlterShareGroupOffsets",
        92: "DeleteShareGroupOffsets",
    },
    "txns": {
        22: "InitProducerId",
        24: "AddPartitionsToTxn",
        25: "AddOffsetsToTxn",
        26: "EndTxn",
        27: "WriteTxnMarkers",
        28: "TxnOffsetCommit",
        65: "DescribeTransactions",
        66: "ListTransactions",
    },
    "cluster": {
        18: "ApiVersions",
        56: "AlterPartition",
        57: "UpdateFeatures",
        58: "Envelope",
        60: "DescribeCluster",
        62: "BrokerRegistration",
        63: "BrokerHeartbeat",
        64: "UnregisterBroker",
        67: "AllocateProducerIds",
        70: "ControllerRegistration",
        71: "GetTelemetrySubscriptions",
        72: "PushTelemetry",
        73: "AssignReplicasToDirs",
        30002: "OttlaDescribeRequests",
    },
    "quorum": {
        52: "Vote",
        53: "BeginQuorumEpoch",
        54: "EndQuorumEpoch",
        55: "DescribeQuorum",
        59: "FetchSnapshot",
        80: "AddRaftVoter",
        81: "RemoveRaftVoter",
        82: "UpdateRaftVoter",
    },
    "security": {
        17: "SaslHandshake",
        29: "DescribeAcls",
        30: "CreateAcls",
        31: "DeleteAcls",
        36: "SaslAuthenticate",
        38: "CreateDelegationToken",
        39: "RenewDelegationToken",
        40: "ExpireDelegationToken",
        41: "DescribeDelegationToken",
        48: "DescribeClientQuotas",
        49: "AlterClientQuotas",
        50: "DescribeUserScramCredentials",
        51: "AlterUserScramCredentials",
    },
}

# From this key on, APIs are ours: Kafka has no such keys, and its clients are not told of these APIs (ADR 0048).
FIRST_OWN_KEY = 30_000
# The name by which our client introduces itself in ApiVersions.
OWN_CLIENT = "ottla"
# Keys 4 to 7 belonged to ZooKeeper-based clusters and will not come back.
API_NAMES: dict[int, str] = dict(sorted(pair for names in APIS.values() for pair in names.items()))
_FOLDERS = {key: folder for folder, names in APIS.items() for key in names}


def snake(name: str) -> str:
    """Convert `ListOffsets` to `list_offsets`: the name of the API's message module and of its handler."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def module_of(key: int) -> str:
    """Return the module of an API's messages, and of its handler, below their packages: `records.list_offsets`."""
    return f"{_FOLDERS[key]}.{snake(API_NAMES[key])}"


@cache
def request_class(key: int) -> type[Request[Response]]:
    """Return the request class of an API; KeyError if there is no such API."""
    return cast("type[Request[Response]]", _declared(key, "Request"))


@cache
def response_class(key: int) -> type[Response]:
    """Return the response class of an API; KeyError if there is no such API."""
    return cast("type[Response]", _declared(key, "Response"))


def _declared(key: int, direction: str) -> object:
    return getattr(import_module(f"ottla.wire.messages.{module_of(key)}"), API_NAMES[key] + direction)
