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

from ottla.client.assign.members import Assignment, Member, in_order, subscribers
from ottla.model.ids import TopicPartition

Owners = Mapping[TopicPartition, str]


def sticky(members: Mapping[str, Member], partition_counts: Mapping[str, int]) -> Assignment:
    """Even first, then sticky."""
    eligible = {topic: ids for topic, ids in subscribers(members).items() if partition_counts.get(topic, 0) > 0}
    owners = rightful_owners(members, partition_counts)
    held: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in in_order(members, members)}
    for partition, member_id in owners.items():
        held[member_id][partition] = None
    _deal_free(held, eligible, partition_counts, owners)
    while _move_one(held, eligible, owners):
        pass
    return {member_id: sorted(partitions) for member_id, partitions in held.items()}


def rightful_owners(members: Mapping[str, Member], partition_counts: Mapping[str, int]) -> dict[TopicPartition, str]:
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
    held: dict[str, dict[TopicPartition, None]],
    eligible: Mapping[str, list[str]],
    partition_counts: Mapping[str, int],
    owners: Owners,
) -> None:
    """Topics that few may read come first: the others have more choice later."""
    for topic in sorted(eligible, key=lambda each: (len(eligible[each]), each)):
        waiting = [(len(held[member_id]), position) for position, member_id in enumerate(eligible[topic])]
        heapq.heapify(waiting)
        for index in range(partition_counts[topic]):
            partition = TopicPartition(topic, index)
            if partition not in owners:
                count, position = waiting[0]
                held[eligible[topic][position]][partition] = None
                heapq.heapreplace(waiting, (count + 1, position))


def _move_one(held: dict[str, dict[TopicPartition, None]], eligible: Mapping[str, list[str]], kept: Owners) -> bool:
    """Move one partition from the member with most that can give any; False when none can.

    Only one at a time, always from the most: whoever gives more than that gives up what it could have kept. Each move
    lowers the sum of squares of the counts, so moves come to an end.
    """
    for giver in sorted(held, key=lambda each: -len(held[each])):
        mine = held[giver]
        topics = dict.fromkeys(each.topic for each in mine)
        takers = {topic: min(eligible[topic], key=lambda each: len(held[each])) for topic in topics}
        fair = [each for each in mine if len(held[takers[each.topic]]) < len(mine) - 1]
        if fair:
            # What it did not have before goes first: that costs nobody anything.
            partition = min(fair, key=lambda each: (kept.get(each) == giver, len(held[takers[each.topic]])))
            del mine[partition]
            held[takers[partition.topic]][partition] = None
            return True
    return False
