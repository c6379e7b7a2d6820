"""Which replica a consumer should read from (KIP-392): the leader, or a follower in the consumer's own rack."""

from __future__ import annotations

from collections.abc import Callable

from ottla.replica.partition import Partition

# The values of replica.selector.class.
LEADER = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred(
    partition: Partition, offset: int, rack: str, rack_of: Callable[[int], str | None], now_ms: int
) -> int | None:
    """Return the follower that a consumer at `offset` should fetch from; None if it should stay with this leader.

    Only members of the ISR that have the offset are considered: a consumer of a lagging replica would lag for ever. Of
    several, the one with the highest log end is chosen. `rack_of` knows only brokers that the consumer can reach.
    """
    in_sync = partition.in_sync
    if in_sync is None or not rack or rack_of(partition.node_id) == rack:
        return None
    near = [
        (follower.log_end, follower.caught_up_ms - now_ms, broker_id)
        for broker_id, follower in in_sync.followers.items()
        if broker_id in in_sync.isr and follower.log_start <= offset <= follower.log_end and rack_of(broker_id) == rack
    ]
    return max(near)[2] if near else None
