"""The range assignor: divides each topic by itself into runs of adjacent partitions; the first members get one more."""

from collections.abc import Mapping

from ottla.client.assign.members import Assignment, SubscribedMember, subscribers
from ottla.model.ids import TopicPartition


def range_(members: Mapping[str, SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
    """Assign partitions by range. Same-numbered partitions of equally subscribed topics go to the same member, as
    joins by key require.
    """
    result: Assignment = {member_id: [] for member_id in members}
    for topic, ids in subscribers(members).items():
        each, extra = divmod(partition_counts.get(topic, 0), len(ids))
        start = 0
        for position, member_id in enumerate(ids):
            end = start + each + (1 if position < extra else 0)
            result[member_id].extend(TopicPartition(topic, index) for index in range(start, end))
            start = end
    return result
