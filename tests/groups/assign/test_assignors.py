"""Assignors: everything is assigned once, to somebody who reads it; balance; and no more moves than needed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.assign.range import range_
from ottla.groups.assign.spec import Assignor, GroupSpec, MemberSpec, Partitions, are_disjoint, size
from ottla.groups.assign.uniform import uniform

TOPICS = [bytes([number]) * 16 for number in range(4)]
EACH_ASSIGNOR = pytest.mark.parametrize("assign", [uniform, range_])

sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)


@st.composite
def groups(draw: st.DrawFn, *, alike: bool = False) -> GroupSpec:
    """Members, some static, who may own what an earlier assignment of other members and other topics gave them."""
    partitions = draw(sizes)
    names = draw(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6, unique=True))
    subscriptions = st.frozensets(st.sampled_from(sorted(partitions)))
    same = draw(subscriptions)
    free = [(topic, partition) for topic in TOPICS for partition in range(10)]
    owners = draw(st.lists(st.sampled_from([*names, ""]), min_size=len(free), max_size=len(free)))
    members = {}
    for name in names:
        owned: dict[bytes, frozenset[int]] = {}
        for (topic, partition), owner in zip(free, owners, strict=True):
            if owner == name:
                owned[topic] = owned.get(topic, frozenset()) | {partition}
        topics = same if alike else draw(subscriptions)
        members[name] = MemberSpec(topics, owned, draw(st.sampled_from([None, f"instance-{name}"])))
    return GroupSpec(members, partitions)


def again(spec: GroupSpec, found: dict[str, Partitions]) -> GroupSpec:
    members = {name: member._replace(owned=found.get(name, {})) for name, member in spec.members.items()}
    return spec._replace(members=members)


@EACH_ASSIGNOR
@given(spec=groups())
def test_each_partition_has_one_owner_that_reads_it(assign: Assignor, spec: GroupSpec) -> None:
    found = assign(spec)
    held = [(topic, each) for owned in found.values() for topic, partitions in owned.items() for each in partitions]
    read = {topic for member in spec.members.values() for topic in member.topics}
    assert sorted(held) == sorted((topic, each) for topic in read for each in range(spec.partitions[topic]))
    for name, owned in found.items():
        assert owned.keys() <= spec.members[name].topics
        assert all(owned.values()), "no empty topics"


@EACH_ASSIGNOR
@given(spec=groups())
def test_assigning_again_moves_nothing(assign: Assignor, spec: GroupSpec) -> None:
    found = assign(spec)
    assert assign(again(spec, found)) == found


@EACH_ASSIGNOR
@given(spec=groups())
def test_the_order_of_members_does_not_matter(assign: Assignor, spec: GroupSpec) -> None:
    backwards = dict(reversed(spec.members.items()))
    assert assign(GroupSpec(backwards, spec.partitions)) == assign(spec)


@given(spec=groups(alike=True))
def test_uniform_counts_differ_by_one_at_most(spec: GroupSpec) -> None:
    counts = [size(owned) for owned in uniform(spec).values()]
    assert max(counts) - min(counts) <= 1


@given(spec=groups(alike=True))
def test_uniform_keeps_as_much_as_balance_allows(spec: GroupSpec) -> None:
    """Of what a member owns it loses only what is above its share."""
    found = uniform(spec)
    for name, member in spec.members.items():
        could_keep = {
            (topic, each)
            for topic, partitions in member.owned.items()
            if topic in member.topics
            for each in partitions
            if each < spec.partitions[topic]
        }
        kept = {(topic, each) for topic, each in could_keep if each in found[name].get(topic, ())}
        assert len(kept) == min(len(could_keep), size(found[name]))


@given(spec=groups())
def test_uniform_leaves_no_move_that_would_balance_better(spec: GroupSpec) -> None:
    found = uniform(spec)
    counts = {name: size(owned) for name, owned in found.items()}
    for rich, owned in found.items():
        for topic in owned:
            for poor, member in spec.members.items():
                if topic in member.topics:
                    assert counts[rich] <= counts[poor] + 1


@given(spec=groups())
def test_range_gives_runs_in_order(spec: GroupSpec) -> None:
    """Readers in order of instance ids, then of member ids; of each topic a run, the first runs one longer."""
    found = range_(spec)
    ordered = sorted(
        spec.members, key=lambda name: (spec.members[name].instance_id is None, spec.members[name].instance_id or name)
    )
    for topic, count in spec.partitions.items():
        readers = [name for name in ordered if topic in spec.members[name].topics]
        runs = [sorted(found[name].get(topic, ())) for name in readers]
        assert [each for run in runs for each in run] == (list(range(count)) if readers else [])
        lengths = [len(run) for run in runs]
        assert all(one >= other for one, other in pairwise(lengths))
        assert not lengths or max(lengths) - min(lengths) <= 1


def test_nobody() -> None:
    assert uniform(GroupSpec({}, {})) == range_(GroupSpec({}, {})) == {}


def test_a_newcomer_takes_from_the_rich() -> None:
    topic = TOPICS[0]
    old = {name: MemberSpec(frozenset((topic,)), owned) for name, owned in (
        ("a", {topic: frozenset((0, 1, 2))}), ("b", {topic: frozenset((3, 4, 5))}), ("c", {}))}  # fmt: skip
    assert uniform(GroupSpec(old, {topic: 6})) == {
        "a": {topic: frozenset((0, 1))},
        "b": {topic: frozenset((3, 4))},
        "c": {topic: frozenset((2, 5))},
    }


def test_targets_that_overlap_are_found() -> None:
    a, b = bytes(15) + b"a", bytes(15) + b"b"
    assert are_disjoint([{a: frozenset({0, 1})}, {a: frozenset({2}), b: frozenset({0})}, {}])
    assert not are_disjoint([{a: frozenset({0, 1})}, {b: frozenset({1})}, {a: frozenset({1})}])
