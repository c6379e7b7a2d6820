"""Coordinators of very many groups, offsets and transactions: nobody waits while they are listed, loaded or expire.

What there is of them is put into the machines directly, on the node's loop: whoever made it did so over days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import create, eventually
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of
from tests.support.requests.raw import RawConnection

from ottla.groups.classic import journal
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.offsets.entries import entry_of as offset_entry
from ottla.groups.offsets.remove import ExpireOffsets, ForgetTopics
from ottla.groups.offsets.store import CommittedOffset
from ottla.log.producers.producer import ProducerEntry
from ottla.machine.keyed import Entry
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.server.coordination.host import Host
from ottla.server.coordination.hosts import Coordinators
from ottla.shares.state.partition import SharePartitionId, SharePartitionState
from ottla.shares.state.upkeep import Prune, SnapshotCold, TopicsDeleted
from ottla.txns.commands.timeouts import AbortTimedOut, ForgetUnused
from ottla.txns.states import TxnState
from ottla.txns.transaction import TransactionMetadata
from ottla.txns.transaction import entry_of as transaction_entry
from ottla.wire.messages.groups.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.records.describe_producers import DescribeProducersRequest
from ottla.wire.messages.txns.list_transactions import ListTransactionsRequest

MANY = 50_000
LOADED = 20_000
LONG_AGO_MS = 1
TOPIC_ID = bytes(15) + b"\1"
JOURNALS = 50
KEYS = {"groups": (0, "g"), "txns": (1, "t"), "shares": (2, "g:AAAAAAAAAAAAAAAAAAAAAQ:0")}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    settings = {
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.num.partitions": 1,
    }
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings) as started, started.connect() as connection:
        for kind, key in KEYS.values():
            find = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            eventually(lambda find=find: is_found(connection, find), "a coordinator")
        yield started


def is_found(connection: RawConnection, find: FindCoordinatorRequest) -> bool:
    answer: Any = connection.call(find, 6)
    return not answer.coordinators[0].error_code


def host(node: MeasuredNode, of: str) -> Host[Any]:
    def found() -> Host[Any]:
        coordinators = node.node.rooms.coordinators.all
        coordinators: dict[str, Coordinators[Any]] = {
            "groups": coordinators.groups.coordinators,
            "txns": coordinators.transactions.coordinators,
            "shares": coordinators.shares.coordinators,
        }
        return next(coordinators[of].hosts())

    return node.call(found)


@pytest.fixture
def groups(node: MeasuredNode) -> Iterator[Host[Any]]:
    """Without any."""
    found = host(node, "groups")
    yield found
    state = found.machine.view.state

    def forget() -> None:
        state.groups.clear()
        state.offsets.__init__()

    node.call(forget)


@pytest.fixture
def txns(node: MeasuredNode) -> Iterator[Host[Any]]:
    found = host(node, "txns")
    yield found
    state = found.machine.view.state
    node.call(lambda: (state.transactions.clear(), state.ongoing.clear()))


def put(node: MeasuredNode, host: Host[Any], entries: Iterable[Entry]) -> None:
    """What the machine would know if these had been in its journal."""

    def apply() -> None:
        for entry in entries:
            host.machine.apply(entry)

    node.call(apply)


def offsets(group: str, count: int, at_ms: int) -> Iterator[Entry]:
    return (
        offset_entry(group, TopicPartition("t", index), CommittedOffset(5, -1, "", at_ms)) for index in range(count)
    )


def transactions(state: TxnState, at_ms: int, count: int = MANY) -> Iterator[Entry]:
    where = () if state is TxnState.EMPTY else (TopicPartition("nowhere", 0),)
    return (
        transaction_entry(
            TransactionMetadata(f"t-{n}", n, 0, 60_000, state, where, started_ms=at_ms, updated_ms=at_ms), 2
        )
        for n in range(count)
    )


def called(node: MeasuredNode, request: Any, version: int, check: Callable[[Any], object]) -> Callback:
    def call() -> None:
        with node.connect() as connection:
            check(connection.call(request, version))

    return best_of(lambda: node.cost(call))


# --- what clients ask


def test_list_groups(node: MeasuredNode, groups: Host[Any]) -> None:
    now_ms = node.node.runtime.now_ms()
    put(node, groups, (journal.entry_of(ClassicGroup.empty(f"group-{n}", now_ms)) for n in range(MANY)))

    def check(answer: Any) -> None:
        assert len(answer.groups) == MANY

    assert called(node, ListGroupsRequest(), 5, check).cpu_ms <= BUDGET_MS


def test_list_transactions(node: MeasuredNode, txns: Host[Any]) -> None:
    put(node, txns, transactions(TxnState.EMPTY, node.node.runtime.now_ms()))
    listing = ListTransactionsRequest(state_filters=[], producer_id_filters=[], transactional_id_pattern="t-.*7")

    def check(answer: Any) -> None:
        assert len(answer.transaction_states) == MANY // 10

    assert called(node, listing, 2, check).cpu_ms <= BUDGET_MS


@pytest.mark.parametrize(("version", "named"), [(8, False), (5, False), (8, True)])
def test_fetch_offsets(node: MeasuredNode, groups: Host[Any], version: int, named: bool) -> None:
    put(node, groups, offsets("g", MANY, node.node.runtime.now_ms()))
    group = OffsetFetchRequest.Group
    wanted = [group.Topics(name="t", partition_indexes=list(range(MANY)))] if named else None
    fetch = OffsetFetchRequest(group_id="g", topics=None, groups=[group(group_id="g", topics=wanted)])

    def check(answer: Any) -> None:
        (topic,) = answer.groups[0].topics if version >= 8 else answer.topics
        assert [each.partition_index for each in topic.partitions] == list(range(MANY))
        assert {each.committed_offset for each in topic.partitions} == {5}

    assert called(node, fetch, version, check).cpu_ms <= BUDGET_MS


def test_commit_offsets(node: MeasuredNode, groups: Host[Any]) -> None:
    with node.connect() as connection:
        create(connection, "committed", 1_000)
    topic = OffsetCommitRequest.Topic
    partitions = [
        topic.Partition(partition_index=n % 1_000, committed_offset=n, committed_metadata="") for n in range(MANY)
    ]
    commit = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=-1,
        topics=[topic(name="committed", partitions=partitions)],
    )

    def check(answer: Any) -> None:
        assert {each.error_code for each in answer.topics[0].partitions} == {0}

    assert called(node, commit, 8, check).cpu_ms <= BUDGET_MS


def test_delete_a_group_of_very_many_offsets(node: MeasuredNode, groups: Host[Any]) -> None:
    """More than fit into one batch of the journal."""
    state = groups.machine.view.state
    names = (f"g{number}" for number in count())

    def attempt() -> Callback:
        name = next(names)
        put(node, groups, offsets(name, MANY, node.node.runtime.now_ms()))
        delete = DeleteGroupsRequest(groups_names=[name])

        def call() -> None:
            with node.connect() as connection:
                answer: Any = connection.call(delete, 2)
            assert answer.results[0].error_code == ErrorCode.NONE

        cost = node.cost(call)
        assert name not in state.groups
        assert not state.offsets.of(name)
        return cost

    assert best_of(attempt).cpu_ms <= BUDGET_MS


def test_delete_very_many_groups(node: MeasuredNode, groups: Host[Any]) -> None:
    def attempt() -> Callback:
        now_ms = node.node.runtime.now_ms()
        put(node, groups, (entry for n in range(50) for entry in offsets(f"g{n}", 900, now_ms)))
        delete = DeleteGroupsRequest(groups_names=[f"g{n}" for n in range(50)])

        def call() -> None:
            with node.connect() as connection:
                answer: Any = connection.call(delete, 2)
            assert {each.error_code for each in answer.results} == {0}

        return node.cost(call)

    assert best_of(attempt).cpu_ms <= BUDGET_MS


def test_describe_very_many_groups(node: MeasuredNode, groups: Host[Any]) -> None:
    now_ms = node.node.runtime.now_ms()
    put(node, groups, (journal.entry_of(ClassicGroup.empty(f"g{n}", now_ms)) for n in range(MANY // 4)))

    def check(answer: Any) -> None:
        assert {each.group_state for each in answer.groups} == {"Empty"}

    describe = DescribeGroupsRequest(groups=[f"g{n}" for n in range(MANY // 4)])
    assert called(node, describe, 5, check).cpu_ms <= BUDGET_MS


def test_describe_very_many_producers(node: MeasuredNode) -> None:
    with node.connect() as connection:
        create(connection, "written", 1)
    log = node.call(lambda: node.node.partitions.find("written", 0).log)
    made = {id: ProducerEntry(id, 0) for id in range(MANY)}
    node.call(lambda: log.producers._states.update(made))
    asked = DescribeProducersRequest.TopicRequest(name="written", partition_indexes=[0])

    def check(answer: Any) -> None:
        assert len(answer.topics[0].partitions[0].active_producers) == MANY

    assert called(node, DescribeProducersRequest(topics=[asked]), 0, check).cpu_ms <= BUDGET_MS
    node.call(log.producers._states.clear)


# --- what the clock does


def done(node: MeasuredNode, host: Host[Any], command: Any, is_over: Callable[[], bool]) -> Callback:
    def run() -> None:
        node.call(lambda: host.submit(command, lambda _: None))
        eventually(is_over, "it is over")

    return node.cost(run)


def test_very_many_offsets_expire(node: MeasuredNode, groups: Host[Any]) -> None:
    state = groups.machine.view.state

    def attempt() -> Callback:
        put(node, groups, offsets("old", MANY, LONG_AGO_MS))
        return done(node, groups, ExpireOffsets(), lambda: "old" not in state.groups)

    assert best_of(attempt).cpu_ms <= BUDGET_MS


def test_very_many_groups_are_looked_at(node: MeasuredNode, groups: Host[Any]) -> None:
    """Of which only the last has anything that has to go."""
    now_ms = node.node.runtime.now_ms()
    put(node, groups, (entry for n in range(MANY) for entry in offsets(f"g{n}", 1, now_ms)))
    state = groups.machine.view.state

    def expire() -> Callback:
        put(node, groups, offsets("zz", 1, LONG_AGO_MS))
        return done(node, groups, ExpireOffsets(), lambda: "zz" not in state.groups)

    def forget() -> Callback:
        where = TopicPartition("gone", 0)
        put(node, groups, [offset_entry("zz", where, CommittedOffset(5, -1, "", now_ms))])
        return done(node, groups, ForgetTopics(frozenset(["gone"])), lambda: where not in state.offsets.of("zz"))

    assert best_of(expire).cpu_ms <= BUDGET_MS
    assert best_of(forget).cpu_ms <= BUDGET_MS


def test_very_many_transactions_are_looked_at(node: MeasuredNode, txns: Host[Any]) -> None:
    state = txns.machine.view.state
    now_ms = node.node.runtime.now_ms()

    def none_is_late() -> Callback:
        put(node, txns, transactions(TxnState.ONGOING, now_ms + 3_600_000))
        return done(node, txns, AbortTimedOut(), lambda: True)

    def all_are_unused() -> Callback:
        put(node, txns, transactions(TxnState.EMPTY, LONG_AGO_MS))
        return done(node, txns, ForgetUnused(), lambda: not state.transactions)

    assert best_of(none_is_late).cpu_ms <= BUDGET_MS
    assert best_of(all_are_unused).cpu_ms <= BUDGET_MS


def test_very_many_states_of_share_groups(node: MeasuredNode) -> None:
    shares = host(node, "shares")
    state = shares.machine.view.state

    def fill() -> None:
        known = SharePartitionState(0, 1, 0, 0, 0, (), LONG_AGO_MS, LONG_AGO_MS, 1, 0)
        state.partitions.update({SharePartitionId(f"g{n % 100}", TOPIC_ID, n): known for n in range(MANY // 2)})

    def cold() -> Callback:
        node.call(fill)
        fresh = (each.written_ms != LONG_AGO_MS for each in state.partitions.values())
        return done(node, shares, SnapshotCold(), lambda: all(fresh))

    def deleted() -> Callback:
        node.call(fill)
        return done(node, shares, TopicsDeleted(frozenset([TOPIC_ID])), lambda: not state.partitions)

    def pruned() -> Callback:
        node.call(fill)
        return done(node, shares, Prune(), lambda: True)

    for attempt in (cold, pruned, deleted):
        assert best_of(attempt).cpu_ms <= BUDGET_MS, attempt


# --- loading


def share_states() -> Iterator[Entry]:
    state = SharePartitionState(0, 1, 0, 0, 0, (), 1, 1, 1, 0)
    return (state.snapshot(SharePartitionId(f"g{n % 100}", TOPIC_ID, n)) for n in range(LOADED))


@pytest.mark.parametrize(
    ("of", "entries", "per_batch"),
    [
        ("groups", lambda: offsets("g", LOADED, 2**50), 8_000),
        ("groups", lambda: (journal.entry_of(ClassicGroup.empty(f"g{n}", 1)) for n in range(LOADED)), 500),
        ("txns", lambda: transactions(TxnState.ONGOING, 2**50, LOADED), 500),
        ("txns", lambda: transactions(TxnState.PREPARE_ABORT, 1, LOADED), 500),
        ("shares", share_states, 500),
    ],
    ids=["offsets", "groups", "ongoing", "prepared", "shares"],
)
def test_a_long_journal_is_loaded(
    node: MeasuredNode, of: str, entries: Callable[[], Iterator[Entry]], per_batch: int
) -> None:
    loaded = host(node, of)
    written = list(entries())
    for first in range(0, LOADED, per_batch):
        node.call(lambda first=first: loaded._append(written[first : first + per_batch]))

    def load() -> None:
        node.call(lambda: loaded.reload("is loaded for a test"))
        eventually(lambda: loaded.active, "it is loaded")

    node.call(loaded._begin)  # a former machine that goes is no part of it
    assert best_of(lambda: node.cost(load)).cpu_ms <= BUDGET_MS


def test_many_journals_are_loaded_at_the_same_time(tmp_path: Path) -> None:
    """As a node does that takes over the coordinators of another one: some of one journal per turn of the loop."""
    with MeasuredNode(tmp_path, {"offsets.topic.num.partitions": JOURNALS}) as node, node.connect() as connection:
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        eventually(lambda: is_found(connection, find), "a coordinator")
        groups = node.node.rooms.coordinators.all.groups.coordinators
        eventually(lambda: all(each.active for each in node.call(lambda: list(groups.hosts()))), "all are loaded")
        written = list(offsets("g", limits.COORDINATOR_LOAD_RECORDS, 2**50))
        for each in node.call(lambda: list(groups.hosts())):
            node.call(lambda each=each: each._append(written))
        slices: list[int] = []  # of each turn

        def count(load_some: Callable[[Host[Any]], bool], host: Host[Any]) -> bool:
            slices[-1] += 1
            return load_some(host)

        def turn() -> None:
            slices.append(0)
            if not all(each.active for each in groups.hosts()):
                node.loop.call_soon(turn)

        def take_over() -> None:
            groups.resign_all()
            slices.append(0)
            groups.follow()
            turn()

        with pytest.MonkeyPatch.context() as patch:
            plain = Host.load_some
            patch.setattr(Host, "load_some", lambda self: count(plain, self))
            node.call(take_over)
            eventually(lambda: node.call(lambda: all(each.active for each in groups.hosts())), "all are loaded")
        assert sum(slices) >= JOURNALS
        assert max(slices) == 1
