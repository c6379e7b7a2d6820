"""Range: of each topic every subscribed member gets one run of neighbouring partitions.

Topics with the same number of partitions and the same subscribers are divided at the same places, so that partition n
of all of them goes to one member (joins rely on it). Members are ordered by instance id, then by member id; the first
ones get one partition more if the division leaves a remainder.
"""

from __future__ import annotations

from ottla.groups.assign.spec import GroupSpec, MemberSpec, Partitions


def range_(spec: GroupSpec) -> dict[str, Partitions]:
    ordered = sorted(spec.members.items(), key=_place)
    found: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id, _ in ordered}
    for topic in sorted(spec.partitions):
        readers = [member_id for member_id, member in ordered if topic in member.topics]
        if not readers:
            continue
        quota, extra = divmod(spec.partitions[topic], len(readers))
        start = 0
        for at, member_id in enumerate(readers):
            end = start + quota + (at < extra)
            if start < end:
                found[member_id][topic] = frozenset(range(start, end))
            start = end
    return dict(found)


def _place(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = item
    return (member.instance_id is None, member_id if member.instance_id is None else member.instance_id)
