"""Secondary failures: a request fails that an operation needs on its way, not its main request.

The lookup inside a fetch, the metadata inside a send, the coordinator inside a commit, the verification inside a
produce, the markers inside the end of a transaction, the state inside a share fetch: each is answered with an error
that Kafka's brokers may send, loses its connection (carried out or not), or is answered late. (For the registry inside
a decode see `decoding`.)
"""

from __future__ import annotations

import random

from ottla.testing.faults import Fault, FaultScript

_LEADER = ("NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION")
_COORDINATOR = ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS")
# Retriable errors by API: a correct client tries again after all of them.
RETRIABLE_ERRORS: dict[str, tuple[str, ...]] = {
    "Metadata": ("LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION"),
    "ListOffsets": (*_LEADER, "OFFSET_NOT_AVAILABLE"),
    "OffsetForLeaderEpoch": _LEADER,
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "OffsetFetch": (*_COORDINATOR, "UNSTABLE_OFFSET_COMMIT"),
    "OffsetCommit": _COORDINATOR,
    "JoinGroup": _COORDINATOR,
    "SyncGroup": _COORDINATOR,
    "Heartbeat": _COORDINATOR,
    "ConsumerGroupHeartbeat": _COORDINATOR,
    "InitProducerId": (*_COORDINATOR, "CONCURRENT_TRANSACTIONS"),
    "AddPartitionsToTxn": (*_COORDINATOR, "CONCURRENT_TRANSACTIONS"),
    "TxnOffsetCommit": _COORDINATOR,
    "EndTxn": (*_COORDINATOR, "CONCURRENT_TRANSACTIONS"),
    "WriteTxnMarkers": ("NOT_LEADER_OR_FOLLOWER", "COORDINATOR_LOAD_IN_PROGRESS"),
    "ShareGroupHeartbeat": _COORDINATOR,
    "ReadShareGroupState": _COORDINATOR,
    "WriteShareGroupState": _COORDINATOR,
    "InitializeShareGroupState": _COORDINATOR,
    "AlterPartition": ("NOT_CONTROLLER",),
    "AllocateProducerIds": ("NOT_CONTROLLER",),
    "ApiVersions": (),
}
# The requests that clients need most often on their way.
_OFTEN = ("Metadata", "ListOffsets", "FindCoordinator", "OffsetFetch", "InitProducerId", "AddPartitionsToTxn")
_DELAYS = ("300ms", "2s", "7s")  # the last one is longer than a client waits for an answer


def strike(script: FaultScript, rng: random.Random) -> list[Fault]:
    """Make some requests of one or two APIs fail, until the faults are cleared or have occurred often enough."""
    often = [api for api in _OFTEN if api in RETRIABLE_ERRORS]
    kinds = rng.sample([*RETRIABLE_ERRORS, *often * 2], rng.randint(1, 2) if len(RETRIABLE_ERRORS) > 1 else 1)
    return [_fail(script, api, rng) for api in dict.fromkeys(kinds)]


def _fail(script: FaultScript, api: str, rng: random.Random) -> Fault:
    ways = ["close", "late", *["error"] * 3 * bool(RETRIABLE_ERRORS[api])]
    way = rng.choice(ways)
    return script.add(
        api,
        rng.choice(RETRIABLE_ERRORS[api]) if way == "error" else None,
        rng.choice((1, 3, None)),
        close=way == "close",
        delay=rng.choice(_DELAYS) if way == "late" else None,
        after=way == "close" and rng.random() < 0.5,
        client_id=None,
    )
