"""The round-robin assignor: assigns all partitions of all topics to the members in turn."""

from collections.abc import Mapping
from itertools import cycle

from ottla.client.assign.members import Assignment, SubscribedMember, in_order, subscribers
from ottla.model.ids import TopicPartition


def roundrobin(members: Mapping[str, SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
    """Assign partitions in turn. A member that did not subscribe to a topic is skipped; the turn continues after the
    member that got the last partition.
    """
    result: Assignment = {member_id: [] for member_id in members}
    wanted = {member_id: frozenset(member.topics) for member_id, member in members.items()}
    turn = cycle(in_order(members, members))
    for topic in subscribers(members):
        for index in range(partition_counts.get(topic, 0)):
            member_id = next(each for each in turn if topic in wanted[each])
            result[member_id].append(TopicPartition(topic, index))
    return result
