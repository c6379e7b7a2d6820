"""The cooperative sticky assignor (KIP-429): the sticky assignment, minus what somebody else still holds.

A partition that is to move is given to nobody in this round. Its owner sees that it lost it, stops reading, and joins
again; the next round hands the free partition to its new owner. So no partition has two readers at any time.
"""

from collections.abc import Mapping

from ottla.client.assign.members import Assignment, SubscribedMember
from ottla.client.assign.sticky import sticky
from ottla.model.ids import TopicPartition


def cooperative_sticky(members: Mapping[str, SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
    """Every claim counts as a hold, even one from an older generation: whoever makes it will be told to let go."""
    holders: dict[TopicPartition, list[str]] = {}
    for member_id, member in members.items():
        for partition in member.owned:
            holders.setdefault(partition, []).append(member_id)
    return {
        member_id: [
            partition for partition in partitions if all(holder == member_id for holder in holders.get(partition, ()))
        ]
        for member_id, partitions in sticky(members, partition_counts).items()
    }
