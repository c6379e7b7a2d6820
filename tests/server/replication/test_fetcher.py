"""Followers fetch: everything, at once, and nothing twice."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.server.replicas import FOLLOWER, LEADER, Pair, content, eventually, now_ms, place, topic_id

from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.machine.stepped import in_one_go
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.replica.partition import Partition
from ottla.replica.terms import Terms
from ottla.server.replication.out_of_range import RangeFinder
from ottla.wire.journal import cluster_metadata as journal


def on_a_pair(
    test: Callable[[Pair], Coroutine[Any, Any, None]],
    values: dict[str, str] | None = None,
    disks: tuple[str, ...] = ("data",),
) -> None:
    async def run() -> None:
        pair = Pair(values, disks)
        try:
            await test(pair)
        finally:
            await pair.close()

    asyncio.run(run())


def test_a_follower_copies_the_log_and_its_fetches_move_the_high_watermark() -> None:
    async def test(pair: Pair) -> None:
        pair.create("t", 3)
        for index in range(3):
            pair.leader.produce(index=index, count=index + 1)
        for index in range(3):
            await pair.same("t", index)
        pair.leader.produce(index=1)
        await pair.same("t", 1)

    on_a_pair(test)


def test_a_fetch_names_only_what_changed() -> None:
    async def test(pair: Pair) -> None:
        pair.create("t", 50)
        for index in range(50):
            pair.leader.produce(index=index)
        for index in range(50):
            await pair.same("t", index)
        await eventually(lambda: not pair.wire.fetches[-1].topics or len(pair.wire.fetches[-1].topics[0].partitions))
        before = len(pair.wire.fetches)
        pair.leader.produce(index=7)
        await pair.same("t", 7)
        after = pair.wire.fetches[before:]
        assert [[ask.partition for topic in each.topics for ask in topic.partitions] for each in after] == [[7]]

    on_a_pair(test)


def test_who_joins_during_a_long_poll_does_not_wait_for_its_end() -> None:
    async def test(pair: Pair) -> None:
        pair.create("a")
        pair.leader.produce("a")
        await pair.same("a")
        polls = len(pair.wire.fetches)  # the last of them waits for a minute
        pair.create("b")
        pair.leader.produce("b")
        await pair.same("b")
        assert len(pair.wire.fetches) > polls
        pair.leader.produce("a")
        await pair.same("a")

    on_a_pair(test)


def test_a_follower_cuts_what_another_leader_wrote() -> None:
    async def test(pair: Pair) -> None:
        pair.create("t")
        pair.leader.produce(count=3)
        await pair.same()
        pair.wire.cut()
        pair.elect(FOLLOWER)
        lost = pair.follower.partitions.find("t", 0)
        lost.append(build_batch([(None, b"nobody else has this")] * 5, timestamp=now_ms()), now_ms=now_ms())
        cuts: list[Any] = []
        pair.follower.storage.cut = cuts.append  # type: ignore[method-assign]
        pair.elect(LEADER)
        pair.leader.produce(count=2, value=b"what counts")
        assert lost.log.next_offset == 8
        pair.wire.is_cut = False
        await pair.same()
        assert lost.log.next_offset == 5
        assert cuts == [lost]

    on_a_pair(test)


def test_a_lost_connection_is_made_again_and_everything_named_anew() -> None:
    async def test(pair: Pair) -> None:
        pair.create("t", 2)
        pair.leader.produce()
        await pair.same()
        pair.wire.cut()
        pair.leader.produce()
        pair.leader.produce(index=1)
        await asyncio.sleep(0.05)
        assert pair.follower.log().next_offset == 1
        pair.wire.is_cut = False
        await pair.same()
        await pair.same(index=1)

    on_a_pair(test)


def test_a_mistake_while_connecting_is_not_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async def test(pair: Pair) -> None:
        honest = pair.wire.connect

        async def fails_once(*args: Any, **options: Any) -> Any:
            pair.wire.connect = honest  # type: ignore[method-assign]
            raise AttributeError("ours")

        pair.wire.connect = fails_once  # type: ignore[method-assign]
        pair.create()
        pair.leader.produce()
        await pair.same()
        assert f"broker {LEADER} cannot be followed" in caplog.text

    on_a_pair(test)


def test_a_session_that_the_leader_forgot_is_opened_anew() -> None:
    async def test(pair: Pair) -> None:
        pair.create()
        pair.leader.produce()
        await pair.same()
        pair.leader.fetches.sessions._sessions.clear()
        pair.leader.produce()  # answers the fetch that waits; the next one finds no session
        await pair.same()
        assert sum(each.session_id == 0 for each in pair.wire.fetches) == 2

    on_a_pair(test)


def test_a_leader_without_room_for_a_session_is_not_asked_more_often() -> None:
    async def test(pair: Pair) -> None:
        pair.leader.fetches.sessions._slots = 0
        pair.create("t", 2)
        pair.leader.produce()
        await pair.same()
        await asyncio.sleep(0.05)
        before = len(pair.wire.fetches)
        await asyncio.sleep(0.1)
        assert len(pair.wire.fetches) == before
        pair.leader.produce(index=1)
        await pair.same(index=1)
        assert all(len(each.topics[0].partitions) == 2 for each in pair.wire.fetches)

    on_a_pair(test)


def test_a_partition_that_fails_does_not_hold_up_the_others() -> None:
    async def test(pair: Pair) -> None:
        pair.create("t", 2)
        pair.leader.produce()
        await pair.same()
        # The follower hears of an election that the leader has not heard of yet.
        ahead = pair.follower.partitions.find("t", 1)
        ahead.follow(Terms(LEADER, 5, 9, (LEADER, FOLLOWER), (LEADER, FOLLOWER)))
        in_one_go(pair.replication.reloading(pair.state))
        pair.leader.produce(index=0)
        pair.leader.produce(index=1)
        await pair.same(index=0)
        assert ahead.log.next_offset == 0
        for _ in range(5):
            pair.elect(LEADER, index=1)
        await pair.same(index=1)

    on_a_pair(test, {"replica.fetch.backoff.ms": "50"})


def test_a_follower_begins_anew_where_its_leader_has_deleted_more_than_it_has(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if the first attempt fails for a reason that nobody thought of."""
    move_end, failures = RangeFinder.move_end, iter([RuntimeError("oh")])

    async def not_at_first(*args: Any) -> None:
        for failure in failures:
            raise failure
        await move_end(*args)

    monkeypatch.setattr(RangeFinder, "move_end", not_at_first)

    async def test(pair: Pair) -> None:
        pair.create()
        pair.leader.produce(count=3)
        await pair.same()
        pair.wire.cut()
        for _ in range(4):
            pair.leader.produce(count=10)
        partition = pair.leader.partitions.find("t", 0)
        partition.high_watermark = 23
        partition.delete_records(23)
        pair.wire.is_cut = False
        await eventually(lambda: partition.high_watermark == 43)
        log = pair.follower.log()
        assert log.log_start_offset == 23
        assert log.next_offset == 43
        assert "t-0 cannot be followed" in caplog.text

    on_a_pair(test)


def test_work_on_a_partition_that_is_no_longer_followed_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not begun means not made either: a coroutine that nobody awaits is a warning, and that is an error here."""
    asked: list[str] = []

    async def find_range(*args: Any) -> None:
        asked.append("begun")

    monkeypatch.setattr(RangeFinder, "move_end", find_range)

    async def test(pair: Pair) -> None:
        pair.create()
        pair.leader.produce()
        await pair.same()
        (follower,) = pair.replication._fetchers.values()
        ((key, followed),) = follower.session.followed.items()
        follower._refused(followed, ErrorCode.OFFSET_OUT_OF_RANGE)
        follower.remove(key)
        await asyncio.sleep(0)
        gc.collect()
        assert not asked

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        on_a_pair(test)
    assert not [str(each.message) for each in caught if "never awaited" in str(each.message)]


def test_a_durable_follower_acknowledges_when_it_has_synced() -> None:
    async def test(pair: Pair) -> None:
        pair.create()
        pair.configure("flush.messages", "1")
        disk = pair.follower.disks["data"]
        pair.leader.produce()
        await pair.same()
        assert pair.follower.log().recovery_point == 1
        syncs = disk.syncs
        pair.leader.produce()
        await pair.same()
        assert disk.syncs > syncs
        assert pair.follower.log().recovery_point == 2

    on_a_pair(test)


def write_slowly(pair: Pair) -> list[Partition]:
    """The follower's disk makes its writers wait from now on; its partitions that asked for a worker."""
    asked: list[Partition] = []
    pair.follower.storage.writer.request = asked.append  # type: ignore[method-assign]
    pair.follower.disks["data"].faults.slow_writes = True
    return asked


def written(pair: Pair, partition: Partition) -> None:
    """A worker was there."""
    partition.log.write_waiting()
    partition.written()
    pair.follower.waiters.notify(partition)


@pytest.mark.parametrize("flush_messages", [1, 1_000])
def test_a_follower_whose_disk_is_slow_acknowledges_what_is_written_and_others_go_on(flush_messages: int) -> None:
    async def test(pair: Pair) -> None:
        pair.create("t", 2)
        for index in range(2):
            pair.leader.produce(index=index)
            await pair.same("t", index)
        pair.configure("flush.messages", str(flush_messages))
        pair.follower.storage.syncer.request = lambda partition: None  # syncs take as long as the test
        asked = write_slowly(pair)
        pair.leader.produce()
        await eventually(lambda: asked, "it was fetched")
        pair.follower.disks["data"].faults.slow_writes = False
        pair.configure("flush.messages", "1000")
        pair.leader.produce(index=1)
        await pair.same("t", 1)
        led, (waits, *_) = pair.leader.partitions.find("t", 0), asked
        assert (waits.log.next_offset, waits.log.written_offset, led.high_watermark) == (2, 1, 1)
        written(pair, waits)
        await pair.same("t", 0)
        assert led.high_watermark == 2

    on_a_pair(test)


def test_who_led_tells_nobody_of_what_waits_for_its_disk() -> None:
    async def test(pair: Pair) -> None:
        pair.create("t")
        pair.leader.produce()
        await pair.same()
        pair.elect(FOLLOWER)
        asked = write_slowly(pair)
        pair.follower.produce()
        begun = len(pair.wire.fetches)
        pair.elect(LEADER)
        await asyncio.sleep(0.05)
        assert not any(fetch.topics for fetch in pair.wire.fetches[begun:])
        pair.follower.disks["data"].faults.slow_writes = False
        written(pair, asked[0])
        await eventually(lambda: asked[0].log.next_offset == 1, "it is cut")
        told = [
            ask.fetch_offset
            for fetch in pair.wire.fetches[begun:]
            for topic in fetch.topics
            for ask in topic.partitions
        ]
        assert told[0] == 2

    on_a_pair(test)


def test_a_throttled_replica_that_catches_up_is_held_back_and_others_are_not() -> None:
    async def test(pair: Pair) -> None:
        pair.create("slow")
        pair.create("quick")
        pair.configure("follower.replication.throttled.replicas", "*", "slow")
        pair.replication.quotas.follower.limit = 1000
        for name in ("slow", "quick"):
            state = pair.state.topics[name].partitions[0]
            pair.state.topics[name].partitions[0] = state._replace(isr=(LEADER,))
        pair.leader.produce("slow", value=b"x" * 2000)
        await eventually(lambda: pair.follower.log("slow").next_offset == 1)
        pair.leader.produce("slow", value=b"x" * 2000)
        pair.leader.produce("quick", value=b"x" * 2000)
        await eventually(lambda: pair.follower.log("quick").next_offset == 1)
        assert pair.follower.log("slow").next_offset == 1
        pair.replication.quotas.follower.limit = None
        await eventually(lambda: pair.follower.log("slow").next_offset == 2)

    on_a_pair(test)


def test_a_directory_that_fails_stops_its_partitions_alone() -> None:
    async def test(pair: Pair) -> None:
        pair.create("t", 2)
        for index in range(2):
            pair.leader.produce(index=index)
            await eventually(lambda index=index: pair.follower.log("t", index).next_offset == 1)
        failing = pair.follower.partitions.directory_of(place("t", 0))
        assert failing is not pair.follower.partitions.directory_of(place("t", 1))
        assert failing is not None
        pair.follower.disks[failing.path].faults.read_only = True
        for index in range(2):
            pair.leader.produce(index=index)
        await eventually(lambda: pair.follower.partitions.offline_directories() == [failing.id])
        await eventually(lambda: pair.follower.log("t", 1).next_offset == 2)

    on_a_pair(test, disks=("one", "two"))


def test_a_sync_that_cannot_even_begin_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(pair: Pair) -> None:
        pair.create("t", 2)
        pair.configure("flush.messages", "1")
        for index in range(2):
            pair.leader.produce(index=index)
            await pair.same("t", index)
        broken = pair.follower.log("t", 0)
        honest = Log.files_to_sync

        def files_to_sync(log: Log) -> Any:
            if log is broken:
                raise StorageError(5, "no")
            return honest(log)

        monkeypatch.setattr(Log, "files_to_sync", files_to_sync)
        pair.leader.produce(index=0)
        await eventually(lambda: len(pair.follower.partitions.offline_directories()) == 1)
        pair.leader.produce(index=1)
        await pair.same("t", 1)

    on_a_pair(test, disks=("one", "two"))


def test_a_replica_that_is_assigned_elsewhere_is_not_followed_any_more_and_goes() -> None:
    async def test(pair: Pair) -> None:
        pair.create()
        pair.leader.produce()
        await pair.same()
        pair.apply(
            journal.PartitionChangeRecord(partition_id=0, topic_id=topic_id("t"), replicas=[LEADER], isr=[LEADER])
        )
        assert pair.follower.partitions.get("t", 0) is None
        names = pair.follower.disks["data"].list("")
        assert "t-0" not in names
        assert any(name.endswith("-delete") for name in names)
        assert content(pair.leader.log())
        both = journal.PartitionChangeRecord(partition_id=0, topic_id=topic_id("t"), replicas=[LEADER, FOLLOWER])
        one = journal.PartitionChangeRecord(partition_id=0, topic_id=topic_id("t"), replicas=[LEADER])
        for _ in range(2):  # what was left the first time has yet to be removed
            pair.apply(both)
            await eventually(lambda: pair.follower.log().next_offset == pair.leader.log().next_offset)
            pair.apply(one)
            assert "t-0" not in pair.follower.disks["data"].list("")

    on_a_pair(test)
