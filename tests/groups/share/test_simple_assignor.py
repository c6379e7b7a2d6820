"""The simple assignor: everybody has work, work is shared out evenly, and little moves."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.assign.spec import GroupSpec, MemberSpec, Partitions, size
from ottla.groups.share.simple_assignor import simple

A, B = b"a" * 16, b"b" * 16


def everything(sizes: dict[bytes, int]) -> Partitions:
    return {topic: frozenset(range(count)) for topic, count in sizes.items()}


def readers(found: dict[str, Partitions]) -> dict[tuple[bytes, int], int]:
    counts: dict[tuple[bytes, int], int] = {}
    for partitions in found.values():
        for topic, some in partitions.items():
            for each in some:
                counts[topic, each] = counts.get((topic, each), 0) + 1
    return counts


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 6))
def test_same_topics(members: int, of_a: int, of_b: int) -> None:
    sizes = {topic: count for topic, count in {A: of_a, B: of_b}.items() if count}
    spec = GroupSpec({f"m{at:02}": MemberSpec(frozenset(sizes)) for at in range(members)}, sizes)
    found = simple(spec, everything(sizes))
    total = of_a + of_b
    sharing = -(-members // total)
    counts = [size(each) for each in found.values()]
    assert min(counts) >= 1 and max(counts) - min(counts) <= 1
    per_partition = readers(found)
    assert len(per_partition) == total and max(per_partition.values()) <= sharing
    assert sum(per_partition.values()) == sharing * total


@st.composite
def groups(draw: st.DrawFn) -> GroupSpec:
    sizes = {A: draw(st.integers(1, 5)), B: draw(st.integers(1, 5))}
    topics = st.frozensets(st.sampled_from([A, B]))
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8))
    members = {name: MemberSpec(draw(topics)) for name in names}
    read = {topic for member in members.values() for topic in member.topics}
    return GroupSpec(members, {topic: count for topic, count in sizes.items() if topic in read})


@given(groups())
def test_any_topics(spec: GroupSpec) -> None:
    found = simple(spec, everything(dict(spec.partitions)))
    per_partition = readers(found)
    for member, partitions in found.items():
        assert partitions.keys() <= spec.members[member].topics
        assert bool(partitions) == bool(spec.members[member].topics)
    for topic, count in spec.partitions.items():
        assert all((topic, each) in per_partition for each in range(count))


@given(groups())
def test_little_moves(spec: GroupSpec) -> None:
    assignable = everything(dict(spec.partitions))
    found = simple(spec, assignable)
    settled = GroupSpec(
        {name: each._replace(owned=found[name]) for name, each in spec.members.items()}, spec.partitions
    )
    assert simple(settled, assignable) == found
    # Where nobody has to share: when one goes, the others keep what they have.
    alone = spec.homogeneous and len(spec.members) <= sum(spec.partitions.values())
    for name in spec.members if alone else ():
        left = GroupSpec({each: one for each, one in settled.members.items() if each != name}, spec.partitions)
        for other, now in simple(left, assignable).items():
            assert all(some <= now.get(topic, frozenset()) for topic, some in found[other].items())


def test_only_what_is_initialised() -> None:
    spec = GroupSpec({"m": MemberSpec(frozenset({A, B}), owned={A: frozenset({0, 1})})}, {A: 3, B: 1})
    assert simple(spec, {A: frozenset({1, 2})}) == {"m": {A: frozenset({1, 2})}}
    assert simple(spec, {}) == {"m": {}}
    assert simple(GroupSpec({}, {A: 1}), {A: frozenset({0})}) == {}


def test_a_member_that_has_more_keeps_it_when_another_one_goes() -> None:
    """The larger shares go to those who have them already, not to the first members by name."""
    sizes = {A: 3, B: 5}
    spec = GroupSpec({name: MemberSpec(frozenset(sizes)) for name in "abcdef"}, sizes)
    found = simple(spec, everything(sizes))
    assert found["d"] == {B: frozenset({0, 4})}
    left = {name: spec.members[name]._replace(owned=found[name]) for name in "acdef"}
    now = simple(GroupSpec(left, sizes), everything(sizes))
    assert now == {name: found[name] for name in "adef"} | {"c": {A: frozenset({1, 2})}}
