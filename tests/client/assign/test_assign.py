"""The assignors: Java's results where they are fixed, and the promises of the sticky ones for any group."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.assign import ASSIGNORS, Assignment, SubscribedMember
from ottla.model.ids import TopicPartition

TOPICS = ("a", "b", "c")


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, SubscribedMember], dict[str, int]]:
    counts = {topic: draw(st.integers(0, 7)) for topic in TOPICS}
    ids = draw(st.lists(st.text("mnop", min_size=1, max_size=3), min_size=1, max_size=6, unique=True))
    some_topics = st.lists(st.sampled_from(TOPICS), unique=True, max_size=3).map(tuple)
    partitions = [TopicPartition(topic, index) for topic in TOPICS for index in range(9)]
    claims = st.lists(st.sampled_from(partitions), unique=True, max_size=8).map(tuple)
    members = {
        member_id: SubscribedMember(
            draw(some_topics), draw(claims), draw(st.integers(-1, 3)), draw(st.sampled_from([None, f"i{n}"]))
        )
        for n, member_id in enumerate(ids)
    }
    return members, counts


def every_partition(members: Mapping[str, SubscribedMember], counts: Mapping[str, int]) -> list[TopicPartition]:
    wanted = {topic for member in members.values() for topic in member.topics}
    return [TopicPartition(topic, index) for topic in sorted(wanted) for index in range(counts[topic])]


def assigned(result: Assignment) -> list[TopicPartition]:
    return sorted(partition for partitions in result.values() for partition in partitions)


def check_balance(result: Assignment, members: Mapping[str, SubscribedMember]) -> None:
    for giver, partitions in result.items():
        for partition in partitions:
            for taker, member in members.items():
                if partition.topic in member.topics:
                    assert len(result[taker]) >= len(partitions) - 1, (giver, taker, result)


@given(groups(), st.sampled_from(["range", "roundrobin", "sticky"]))
def test_every_partition_goes_to_one_member_that_wants_it(
    group: tuple[dict[str, SubscribedMember], dict[str, int]], name: str
) -> None:
    members, counts = group
    result = ASSIGNORS[name](members, counts)
    assert assigned(result) == every_partition(members, counts)
    assert all(each.topic in members[member_id].topics for member_id in members for each in result[member_id])
    assert ASSIGNORS[name](dict(reversed(members.items())), counts) == result


@given(groups())
def test_sticky_is_balanced_and_stays(group: tuple[dict[str, SubscribedMember], dict[str, int]]) -> None:
    members, counts = group
    result = ASSIGNORS["sticky"](members, counts)
    check_balance(result, members)
    settled = {
        member_id: replace(member, owned=tuple(result[member_id]), generation=7)
        for member_id, member in members.items()
    }
    assert ASSIGNORS["sticky"](settled, counts) == result


@given(st.integers(1, 40), st.integers(1, 7), st.integers(0, 6))
def test_sticky_moves_no_more_than_it_must(partitions: int, before: int, after: int) -> None:
    """Members come or go, all with the same subscription: exactly the surplus of those who stay changes hands."""
    counts = {"a": partitions}
    first = ASSIGNORS["sticky"]({f"m{n}": SubscribedMember(("a",)) for n in range(before)}, counts)
    now = max(after, 1)
    members = {f"m{n}": SubscribedMember(("a",), tuple(first.get(f"m{n}", ())), 1) for n in range(now)}
    second = ASSIGNORS["sticky"](members, counts)
    kept = sum(len(set(first.get(member_id, ())) & set(second[member_id])) for member_id in members)
    quotas = sorted((partitions // now + (n < partitions % now) for n in range(now)), reverse=True)
    owned = sorted((len(first.get(member_id, ())) for member_id in members), reverse=True)
    assert kept == sum(min(mine, quota) for mine, quota in zip(owned, quotas, strict=True))


@given(groups(), st.data())
def test_cooperative_hand_over(group: tuple[dict[str, SubscribedMember], dict[str, int]], data: st.DataObject) -> None:
    """Rounds until nothing moves: in none of them does a partition go to one member while another holds it, and the
    end is what the sticky assignor wants."""
    members, counts = group
    for generation in range(1, 6):
        result = ASSIGNORS["cooperative-sticky"](members, counts)
        given_away = assigned(result)
        assert len(given_away) == len(set(given_away))
        for member_id, partitions in result.items():
            for other, member in members.items():
                if other != member_id:
                    assert not set(partitions) & set(member.owned)
        owned = {member_id: tuple(partitions) for member_id, partitions in result.items()}
        if all(sorted(members[member_id].owned) == sorted(owned[member_id]) for member_id in members):
            break
        members = {
            member_id: replace(member, owned=owned[member_id], generation=generation + 3)
            for member_id, member in members.items()
        }
    else:
        pytest.fail("the group does not settle")
    assert assigned(result) == every_partition(members, counts)
    check_balance(result, members)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # What RangeAssignor and RoundRobinAssignor of kafka-clients 4.3.1 answer for the same group.
        ("range", {"x": ["a0", "a1", "b0", "b1"], "y": ["a2", "b2"], "z": ["c0"]}),
        ("roundrobin", {"x": ["a0", "a2", "b1"], "y": ["a1", "b0", "b2"], "z": ["c0"]}),
    ],
)
def test_the_results_are_javas(name: str, expected: dict[str, list[str]]) -> None:
    members = {
        "y": SubscribedMember(("b", "a")),
        "x": SubscribedMember(("a", "b")),
        "z": SubscribedMember(("c", "unknown")),
    }
    result = ASSIGNORS[name](members, {"a": 3, "b": 3, "c": 1})
    assert {
        member_id: [f"{each.topic}{each.partition}" for each in result[member_id]] for member_id in result
    } == expected


def test_static_members_come_first_by_instance() -> None:
    members = {
        "a": SubscribedMember(("t",)),
        "z": SubscribedMember(("t",), instance_id="2"),
        "y": SubscribedMember(("t",), instance_id="3"),
    }
    result = ASSIGNORS["range"](members, {"t": 4})
    assert [partition.partition for partition in result["z"]] == [0, 1]
    assert [partition.partition for partition in result["y"]] == [2]


def test_a_twin_claim_of_one_generation_belongs_to_neither() -> None:
    held = (TopicPartition("t", 0),)
    members = {"a": SubscribedMember(("t",), held, 4), "b": SubscribedMember(("t",), held, 4)}
    assert assigned(ASSIGNORS["cooperative-sticky"](members, {"t": 1})) == []
    members["b"] = replace(members["b"], generation=5)
    assert ASSIGNORS["sticky"](members, {"t": 1}) == {"a": [], "b": list(held)}
