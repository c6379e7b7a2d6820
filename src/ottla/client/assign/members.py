"""The subscription of a member as an assignor sees it, and the order in which members get partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.model.ids import TopicPartition

Assignment = dict[str, list[TopicPartition]]  # by member id; every member has an entry

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class SubscribedMember:
    """One member as its subscription describes it; `owned` is its assignment in `generation`."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    instance_id: str | None = None


def in_order(members: Mapping[str, SubscribedMember], ids: Iterable[str]) -> list[str]:
    """Static members first, by instance id, so that they keep their place over restarts; the others by member id."""

    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(ids, key=rank)


def subscribers(members: Mapping[str, SubscribedMember]) -> dict[str, list[str]]:
    """Return the subscribed members of each topic, in order; topics sorted."""
    found: dict[str, list[str]] = {}
    for member_id in in_order(members, members):
        for topic in dict.fromkeys(members[member_id].topics):
            found.setdefault(topic, []).append(member_id)
    return dict(sorted(found.items()))
