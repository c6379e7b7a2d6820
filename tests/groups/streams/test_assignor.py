"""The sticky assignor: even shares, few moves, copies apart from each other."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.groups.streams.assignor import StreamsMemberSpec, assign
from ottla.groups.streams.configure import ConfiguredSubtopology
from ottla.groups.streams.tasks import TaskId, TaskSet, each
from ottla.groups.streams.topology import InternalTopic


def sub(tasks: int, *, stateful: bool = False) -> ConfiguredSubtopology:
    changelogs = (InternalTopic("changelog", tasks),) if stateful else ()
    return ConfiguredSubtopology(tasks, frozenset({"topic"}), frozenset(), (), changelogs)


def count(tasks: TaskSet) -> int:
    return sum(1 for _ in each(tasks.active))


def test_members_of_larger_processes_together_get_more() -> None:
    members = {name: StreamsMemberSpec("big") for name in ("a", "b", "c")} | {"d": StreamsMemberSpec("small")}
    found = assign(members, {"0": sub(8)}, 0)
    assert sorted(count(each) for each in found.values()) == [2, 2, 2, 2]


def test_an_active_task_goes_where_its_copy_is() -> None:
    """Its former owner is gone."""
    members = {
        "a": StreamsMemberSpec("p", TaskSet({"0": frozenset({0})}, {"0": frozenset({3})})),
        "b": StreamsMemberSpec("q", TaskSet({"0": frozenset({1})}, {"0": frozenset({2})})),
    }
    found = assign(members, {"0": sub(4, stateful=True)}, 1)
    assert found["a"] == TaskSet({"0": frozenset({0, 3})}, {"0": frozenset({1, 2})})
    assert found["b"] == TaskSet({"0": frozenset({1, 2})}, {"0": frozenset({0, 3})})


def test_nobody_moves_without_need() -> None:
    members = {name: StreamsMemberSpec(name) for name in ("a", "b", "c")}
    subtopologies = {"0": sub(5), "1": sub(3, stateful=True)}
    first = assign(members, subtopologies, 1)
    again = assign({name: StreamsMemberSpec(name, first[name]) for name in members}, subtopologies, 1)
    assert again == first


MEMBERS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["p", "q", "r"]), min_size=1)
SUBTOPOLOGIES = st.dictionaries(
    st.sampled_from("012"), st.builds(sub, st.integers(1, 9), stateful=st.booleans()), min_size=1
)


@settings(max_examples=200, deadline=None)
@given(before=MEMBERS, after=MEMBERS, subtopologies=SUBTOPOLOGIES, copies=st.integers(0, 3))
def test_shares(
    before: dict[str, str], after: dict[str, str], subtopologies: dict[str, ConfiguredSubtopology], copies: int
) -> None:
    """Whoever comes and goes in between."""
    first = assign({name: StreamsMemberSpec(process) for name, process in before.items()}, subtopologies, copies)
    specs = {name: StreamsMemberSpec(process, first.get(name, TaskSet())) for name, process in after.items()}
    found = assign(specs, subtopologies, copies)
    tasks = [TaskId(name, at) for name, one in subtopologies.items() for at in range(one.tasks)]
    assert sorted(task for one in found.values() for task in each(one.active)) == sorted(tasks)
    held = Counter(
        (after[name], task) for name, one in found.items() for task in (*each(one.active), *each(one.standby))
    )
    assert max(held.values()) == 1
    wanted = min(copies, len(set(after.values())) - 1)
    copied = Counter(task for one in found.values() for task in each(one.standby))
    for name, one in subtopologies.items():
        for at in range(one.tasks):
            assert copied[TaskId(name, at)] == (wanted if one.is_stateful else 0)
    processes = Counter(after.values())
    loads = {
        process: sum(count(found[name]) for name in found if after[name] == process) / size
        for process, size in processes.items()
    }
    assert max(loads.values()) - min(loads.values()) <= 2
