"""What a leader answers to followers, to consumers that could read elsewhere, and to producers it leaves waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.server.replicas import FOLLOWER, LEADER, LISTENER, Pair, eventually, now_ms, topic_id

from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.replica.partition import Partition
from ottla.replica.selector import RACK_AWARE
from ottla.server.api.context import Context, Peer
from ottla.server.handlers.records.delete_records import delete_records
from ottla.server.handlers.records.fetch import fetch
from ottla.server.handlers.records.produce import produce
from ottla.server.loop.later import Later
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.produce import ProduceRequest

VERSION = 17
MANY = 200


class Leader(Pair):
    """The leader of a pair whose follower is played by the test."""

    session = (0, 0)

    def __init__(self, values: dict[str, str] | None = None) -> None:
        super().__init__(values)
        self.wire.is_cut = True
        self.side = self.leader

    def fetch(self, offsets: dict[int, int] | None = None, **options: Any) -> Any:
        """As the follower, in its session; the answer, or the Later of one that waits."""
        request = _fetch(offsets or {}, replica=FOLLOWER, session=self.session, **options)
        answer = self.side.handle(request, VERSION)
        self.session = (self.session[0], self.session[1] + 1)
        return answer

    def begin(self, partitions: int = 1) -> None:
        self.create("t", partitions)
        answer = self.fetch(dict.fromkeys(range(partitions), 0))
        assert answer.session_id and told(answer) == dict.fromkeys(range(partitions), (0, 0))
        self.session = (answer.session_id, 1)

    def partition(self, index: int = 0) -> Partition:
        return self.side.partitions.find("t", index)

    def context(self, version: int) -> Context:
        context = Context(self.side.facades(), Peer(LISTENER, ("127.0.0.1", 1), ("127.0.0.1", 2)))
        context.request_version = version
        return context


def _fetch(
    offsets: dict[int, int],
    *,
    replica: int = -1,
    session: tuple[int, int] = (0, -1),
    wait_ms: int = 0,
    max_bytes: int = 1 << 20,
    rack: str = "",
    epoch: int = 0,
) -> FetchRequest:
    asked = [
        FetchRequest.Topic.Partition(
            partition=index,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=0 if offset else -1,
            log_start_offset=0,
            partition_max_bytes=1 << 20,
        )
        for index, offset in offsets.items()
    ]
    return FetchRequest(
        replica_id=replica,
        replica_state=FetchRequest.ReplicaState(replica_id=replica, replica_epoch=10 + replica if replica > 0 else -1),
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchRequest.Topic(topic="t", topic_id=topic_id("t"), partitions=asked)] if asked else [],
        rack_id=rack,
    )


def told(answer: Any) -> dict[int, tuple[int, int]]:
    """(error, bytes) of each partition of an answer."""
    return {
        data.partition_index: (data.error_code, len(data.records or b""))
        for topic in answer.responses
        for data in topic.partitions
    }


def first(answer: Any) -> Any:
    return answer.responses[0].partitions[0]


def on_a_leader(test: Callable[[Leader], Coroutine[Any, Any, None]], values: dict[str, str] | None = None) -> None:
    async def run() -> None:
        leader = Leader(values)
        try:
            await test(leader)
        finally:
            await leader.close()

    asyncio.run(run())


def test_an_idle_fetch_looks_at_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    honest = Partition.fetch_as_follower

    def counted(partition: Partition, *args: Any, **options: Any) -> Any:
        looks.append(partition.index)
        return honest(partition, *args, **options)

    monkeypatch.setattr(Partition, "fetch_as_follower", counted)

    async def test(leader: Leader) -> None:
        leader.begin(MANY)
        looks.clear()
        assert told(leader.fetch()) == {} and looks == []
        waiting = leader.fetch(wait_ms=60_000)
        assert isinstance(waiting, Later) and looks == []
        leader.side.produce(index=7)
        leader.side.produce(index=9)
        answer = await waiting
        assert sorted(told(answer)) == [7, 9] == looks
        looks.clear()
        size_bytes = told(answer)[7][1]
        # Only one of them is taken: the other is given again.
        assert told(leader.fetch({9: 1})) == {7: (0, size_bytes), 9: (0, 0)}
        assert told(leader.fetch({7: 1})) == {7: (0, 0)} and sorted(looks) == [7, 7, 9]
        looks.clear()
        assert told(leader.fetch()) == {} and looks == []
        assert leader.partition(7).high_watermark == leader.partition(9).high_watermark == 1

    on_a_leader(test)


def test_a_fetch_moves_the_high_watermark_that_it_is_told() -> None:
    async def test(leader: Leader) -> None:
        leader.begin()
        leader.side.produce()
        assert first(leader.fetch()).high_watermark == 0
        assert first(leader.fetch({0: 1})).high_watermark == 1

    on_a_leader(test)


def test_a_high_watermark_wakes_nobody_but_is_told() -> None:
    async def test(leader: Leader) -> None:
        leader.begin()
        leader.side.produce()
        leader.fetch()
        waiting = leader.fetch({0: 1}, wait_ms=60_000)
        leader.apply(journal.PartitionChangeRecord(partition_id=0, topic_id=topic_id("t"), isr=[LEADER]))
        leader.side.storage.watches.changed(leader.partition(), hurry=False)
        await asyncio.sleep(0)
        assert not waiting.done
        leader.fetch()
        assert first(waiting.taken()).high_watermark == 1, "the next fetch answers the one that waits"

    on_a_leader(test)


def test_a_session_ends_with_its_connection() -> None:
    async def test(leader: Leader) -> None:
        leader.create()
        context = leader.context(VERSION)
        sessions, watching = leader.side.fetches.sessions, leader.side.storage.watches
        for _ in range(2):
            fetch(_fetch({0: 0}, replica=FOLLOWER, session=(0, 0)), context)
            assert len(sessions) == 1 and watching.watchers(leader.partition()) == 1
        for close in context.when_closed.values():
            close()
        assert len(sessions) == 0 and not watching

    on_a_leader(test)


def test_all_get_their_turn() -> None:
    async def test(leader: Leader) -> None:
        leader.begin(3)
        for index in range(3):
            leader.side.produce(index=index, value=b"x" * 1000)
        turns = [index for _ in range(3) for index in told(leader.fetch(max_bytes=100))]
        assert turns == [0, 1, 2]

    on_a_leader(test)


@pytest.mark.parametrize("loss", ["lead", "topic"])
def test_what_is_lost_is_told_at_once(loss: str) -> None:
    async def test(leader: Leader) -> None:
        leader.begin(2)
        waiting = leader.fetch(wait_ms=60_000)
        if loss == "lead":
            leader.elect(FOLLOWER)
        else:
            leader.apply(journal.RemoveTopicRecord(topic_id=topic_id("t")))
        answer = await waiting
        if loss == "lead":
            assert told(answer) == {0: (ErrorCode.FENCED_LEADER_EPOCH, 0)}
            hint = first(answer).current_leader
            assert (hint.leader_id, hint.leader_epoch) == (FOLLOWER, 1)
            assert not answer.node_endpoints
            consumer = leader.side.handle(_fetch({0: 0}, epoch=0), VERSION)
            assert [(end.node_id, end.port) for end in consumer.node_endpoints] == [(FOLLOWER, 9092 + FOLLOWER)]
        else:
            assert told(answer) == dict.fromkeys((0, 1), (ErrorCode.UNKNOWN_TOPIC_ID, 0))
        assert told(leader.fetch()) == told(answer), "as long as it asks for it"

    on_a_leader(test)


def test_sessions_are_of_one_kind() -> None:
    async def test(leader: Leader) -> None:
        leader.begin()
        stolen = leader.side.handle(_fetch({}, session=leader.session), VERSION)
        assert stolen.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        opened = leader.side.handle(_fetch({0: 0}, session=(0, 0)), VERSION)
        stolen = leader.side.handle(_fetch({}, replica=FOLLOWER, session=(opened.session_id, 1)), VERSION)
        assert stolen.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    on_a_leader(test)


def test_without_a_session() -> None:
    async def test(leader: Leader) -> None:
        leader.create()
        waiting = leader.side.handle(_fetch({0: 0}, replica=FOLLOWER, wait_ms=60_000), VERSION)
        leader.side.produce()
        answer = await waiting
        assert answer.session_id == 0 and first(answer).records
        assert not leader.side.storage.watches, "nothing is remembered"

    on_a_leader(test)


def test_a_throttled_follower_waits_for_its_turn() -> None:
    class Quota:
        exceeded = True
        bytes_sent = 0

        def holds_back(self, topic: str, index: int) -> bool:
            return self.exceeded

        def sent(self, topic: str, index: int, size_bytes: int) -> None:
            self.bytes_sent += size_bytes

    async def test(leader: Leader) -> None:
        leader.begin()
        quota = leader.side.fetches.followers.quota = Quota()
        leader.side.produce()
        assert told(leader.fetch()) != {0: (0, 0)}, "who is in sync is not throttled"
        leader.apply(journal.PartitionChangeRecord(partition_id=0, topic_id=topic_id("t"), isr=[LEADER]))
        sent = quota.bytes_sent
        assert told(leader.fetch()) == {0: (0, 0)} or told(leader.fetch()) == {}
        quota.exceeded = False
        assert told(leader.fetch())[0][1] > 0 and quota.bytes_sent > sent

    on_a_leader(test)


def test_consumers_are_sent_to_their_rack() -> None:
    async def test(leader: Leader) -> None:
        leader.begin()
        leader.state.brokers[FOLLOWER] = leader.state.brokers[FOLLOWER]._replace(rack="near")
        leader.side.produce()
        leader.fetch()
        leader.fetch({0: 1})

        def consumer(rack: str, version: int = VERSION) -> Any:
            return first(leader.side.handle(_fetch({0: 0}, rack=rack, wait_ms=60_000), version))

        sent = consumer("near")
        assert (sent.preferred_read_replica, sent.records or b"", sent.high_watermark) == (FOLLOWER, b"", 1)
        assert consumer("far").preferred_read_replica == consumer("").preferred_read_replica == -1
        # The follower serves those who know of it, and nobody older.
        follower = leader.follower.handle
        assert first(follower(_fetch({0: 0}), VERSION)).error_code == ErrorCode.NONE
        assert first(follower(_fetch({0: 0}), 10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    on_a_leader(test, {"replica.selector.class": RACK_AWARE})


def _produce(leader: Leader, *, acks: int = -1) -> Any:
    data = ProduceRequest.TopicProduceData.PartitionProduceData(
        index=0, records=memoryview(build_batch([(None, b"v")], timestamp=now_ms()))
    )
    topic = ProduceRequest.TopicProduceData(name="t", topic_id=topic_id("t"), partition_data=[data])
    return produce(ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[topic]), leader.context(13))


def test_a_producer_waits_for_the_followers() -> None:
    async def test(leader: Leader) -> None:
        leader.begin()
        assert not isinstance(_produce(leader, acks=1), Later)
        waiting = _produce(leader)
        leader.fetch({0: 1})
        assert not waiting.done
        leader.fetch({0: 2})
        (answer,) = (await waiting).responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (0, 1)

    on_a_leader(test)


@pytest.mark.parametrize("loss", ["before", "while it waits"])
def test_a_producer_of_a_lost_leader(loss: str) -> None:
    async def test(leader: Leader) -> None:
        leader.begin()
        if loss == "before":
            leader.elect(FOLLOWER)
            response = _produce(leader)
        else:
            waiting = _produce(leader)
            leader.elect(FOLLOWER)
            assert waiting.done
            response = waiting.taken()
        (answer,) = response.responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (FOLLOWER, 1)
        assert [end.node_id for end in response.node_endpoints] == [FOLLOWER]

    on_a_leader(test)


def test_too_few_replicas() -> None:
    async def test(leader: Leader) -> None:
        leader.begin()
        leader.configure("min.insync.replicas", "2")
        waiting = _produce(leader)
        leader.fetch({0: 1})
        assert waiting.taken().responses[0].partition_responses[0].error_code == 0
        leader.apply(journal.PartitionChangeRecord(partition_id=0, topic_id=topic_id("t"), isr=[LEADER]))
        (answer,) = _produce(leader).responses[0].partition_responses
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert not _produce(leader, acks=1).responses[0].partition_responses[0].error_code

    on_a_leader(test)


def test_deleted_records_are_deleted_everywhere() -> None:
    async def test(leader: Leader) -> None:
        leader.begin()
        leader.side.produce(count=3)
        leader.fetch()
        leader.fetch({0: 3})
        topic = DeleteRecordsRequest.Topic(
            name="t", partitions=[DeleteRecordsRequest.Topic.Partition(partition_index=0, offset=2)]
        )
        waiting: Any = delete_records(DeleteRecordsRequest(topics=[topic], timeout_ms=60_000), leader.context(2))
        await eventually(lambda: leader.side.log().log_start_offset == 2, "it is on disk, and so here")
        assert isinstance(waiting, Later) and not waiting.done
        assert first(leader.fetch()).log_start_offset == 2
        request = _fetch({0: 3}, replica=FOLLOWER, session=leader.session)
        request.topics[0].partitions[0].log_start_offset = 2
        leader.side.handle(request, VERSION)
        (answer,) = waiting.taken().topics[0].partitions
        assert (answer.error_code, answer.low_watermark) == (0, 2)

    on_a_leader(test)
