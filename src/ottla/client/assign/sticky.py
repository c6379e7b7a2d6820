"""The sticky assignor: as even as the subscriptions allow, and of all such assignments one that moves little.

In three steps: everybody keeps what it rightly owned; what is free goes to whoever has least; then partitions move one
by one from members with more to members with less, while that makes the two more equal.

Rules:
- Of several members that claim a partition the one of the newest generation owned it; of two with the same generation
  neither did.
- Afterwards no partition can move from a member to another that may read it and has at least two fewer.
"""

import heapq
from collections.abc import Mapping

from ottla.client.assign.members import Assignment, SubscribedMember, in_order, subscribers
from ottla.model.ids import TopicPartition


class _Hand:
    """What one member holds, by topic: what it had before, and what it was dealt now."""

    __slots__ = ("kept", "new", "size")

    def __init__(self) -> None:
        self.kept: dict[str, list[TopicPartition]] = {}
        self.new: dict[str, list[TopicPartition]] = {}
        self.size = 0

    def add(self, partition: TopicPartition, *, is_new: bool) -> None:
        (self.new if is_new else self.kept).setdefault(partition.topic, []).append(partition)
        self.size += 1

    def remove(self, topic: str) -> TopicPartition:
        """Give up a partition of the topic; what it did not have before goes first, that costs nobody anything."""
        self.size -= 1
        return (self.new.get(topic) or self.kept[topic]).pop()

    def topics(self) -> list[str]:
        """Topics of which it holds anything; those first of which it can give what it did not have before."""
        fresh = [topic for topic, partitions in self.new.items() if partitions]
        return fresh + [topic for topic, partitions in self.kept.items() if partitions and not self.new.get(topic)]

    def partitions(self) -> list[TopicPartition]:
        return sorted(each for held in (self.kept, self.new) for partitions in held.values() for each in partitions)


def sticky(members: Mapping[str, SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
    """Even first, then sticky."""
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
    """Who owned each partition, as far as that is still possible: it exists, and the member still wants its topic."""
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
    """Topics that few may read come first: the others have more choice later."""
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
    """Move one partition from the member with most that can give any; False when none can.

    Only one at a time, always from the most: whoever gives more than that gives up what it could have kept. Each move
    lowers the sum of squares of the counts, so moves come to an end.
    """
    for hand in sorted(hands.values(), key=lambda each: -each.size):
        for topic in hand.topics():
            taker = min((hands[member_id] for member_id in eligible[topic]), key=lambda each: each.size)
            if taker.size < hand.size - 1:
                taker.add(hand.remove(topic), is_new=True)
                return True
    return False
