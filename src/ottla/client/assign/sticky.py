"""The sticky assignor: the most even assignment that the subscriptions allow, with few moved partitions.

There are three steps: each member keeps the partitions that it rightly owned; each free partition goes to the member
with the fewest; then partitions move one by one from members with more to members with fewer, as long as that makes the
two more equal.

Rules:
- If several members claim a partition, the one with the newest generation owned it; if two have the same generation,
  neither did.
- Afterwards no partition can move from a member to another that may read it and has at least two fewer.
"""

import heapq
from collections.abc import Mapping

from ottla.client.assign.members import Assignment, SubscribedMember, in_order, subscribers
from ottla.model.ids import TopicPartition


class _Hand:
    """The partitions of one member, by topic: those that it keeps and those that it was assigned now."""

    __slots__ = ("kept", "new", "size")

    def __init__(self) -> None:
        self.kept: dict[str, list[TopicPartition]] = {}
        self.new: dict[str, list[TopicPartition]] = {}
        self.size = 0

    def add(self, partition: TopicPartition, *, is_new: bool) -> None:
        (self.new if is_new else self.kept).setdefault(partition.topic, []).append(partition)
        self.size += 1

    def remove(self, topic: str) -> TopicPartition:
        """Take a partition of the topic from the member, preferably a newly assigned one, because moving it costs
        nothing.
        """
        self.size -= 1
        return (self.new.get(topic) or self.kept[topic]).pop()

    def topics(self) -> list[str]:
        """Return the topics of the member's partitions; those with newly assigned partitions first."""
        fresh = [topic for topic, partitions in self.new.items() if partitions]
        return fresh + [topic for topic, partitions in self.kept.items() if partitions and not self.new.get(topic)]

    def partitions(self) -> list[TopicPartition]:
        return sorted(each for held in (self.kept, self.new) for partitions in held.values() for each in partitions)


def sticky(members: Mapping[str, SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
    """Assign partitions evenly first, then with as few moves as possible."""
    eligible = {topic: ids for topic, ids in subscribers(members).items() if partition_counts.get(topic, 0) > 0}
    owners = rightful_owners(members, partition_counts)
    hands = {member_id: _Hand() for member_id in in_order(members, members)}
    for partition, member_id in owners.items():
        hands[member_id].add(partition, is_new=False)
    _deal_free(hands, eligible, partition_counts, owners)
    while _move_one(hands, eligible):
        pass
    return {member_id: hand.partitions() for member_id, hand in hands.items()}


def rightful_owners(
    members: Mapping[str, SubscribedMember], partition_counts: Mapping[str, int]
) -> dict[TopicPartition, str]:
    """Return the owner of each partition that still exists and whose owner is still subscribed to its topic."""
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id in in_order(members, members):
        member = members[member_id]
        wanted = frozenset(member.topics)
        for partition in dict.fromkeys(member.owned):
            if partition.topic not in wanted or partition.partition >= partition_counts.get(partition.topic, 0):
                continue
            generation, _ = claims.get(partition, (member.generation - 1, None))
            if member.generation > generation:
                claims[partition] = (member.generation, member_id)
            elif member.generation == generation:
                claims[partition] = (generation, None)
    return {partition: owner for partition, (_, owner) in sorted(claims.items()) if owner is not None}


def _deal_free(
    hands: Mapping[str, _Hand],
    eligible: Mapping[str, list[str]],
    partition_counts: Mapping[str, int],
    owners: Mapping[TopicPartition, str],
) -> None:
    """Assign the partitions without an owner. Topics with few subscribers come first, because there is less choice."""
    for topic in sorted(eligible, key=lambda each: (len(eligible[each]), each)):
        waiting = [(hands[member_id].size, position) for position, member_id in enumerate(eligible[topic])]
        heapq.heapify(waiting)
        for index in range(partition_counts[topic]):
            partition = TopicPartition(topic, index)
            if partition not in owners:
                count, position = waiting[0]
                hands[eligible[topic][position]].add(partition, is_new=True)
                heapq.heapreplace(waiting, (count + 1, position))


def _move_one(hands: Mapping[str, _Hand], eligible: Mapping[str, list[str]]) -> bool:
    """Move one partition from the member with most partitions that can give one away; return False if none can.

    One partition moves at a time, always from the member with most: moving several would take partitions that it could
    have kept. Each move lowers the sum of the squared counts, so the moves come to an end.
    """
    for hand in sorted(hands.values(), key=lambda each: -each.size):
        for topic in hand.topics():
            taker = min((hands[member_id] for member_id in eligible[topic]), key=lambda each: each.size)
            if taker.size < hand.size - 1:
                taker.add(hand.remove(topic), is_new=True)
                return True
    return False
