"""The cooperative sticky assignor (KIP-429): the sticky assignment without the partitions that other members still
own.

A partition that is to move is assigned to no member in this round. Its owner sees that it lost the partition, stops
reading it, and joins again; the next round assigns the free partition to its new owner. So no partition has two readers
at any time.
"""

from collections.abc import Mapping

from ottla.client.assign.members import Assignment, SubscribedMember
from ottla.client.assign.sticky import sticky
from ottla.model.ids import TopicPartition


def cooperative_sticky(members: Mapping[str, SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
    """Assign partitions as `sticky` does, but leave out those that another member claims to own, even if the claim is
    from an older generation: that member will be told to revoke the partition.
    """
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
