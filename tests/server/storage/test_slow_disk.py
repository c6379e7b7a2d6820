"""A disk that is slow to read, to write, or to sync, holds up those who need it and nobody else."""

import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.share_talk import SMALL as SMALL_TOPICS
from tests.server.share_talk import Queue
from tests.server.talk import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    TOPIC,
    alter,
    create,
    eventually,
    fetch_request,
    produce,
    produce_request,
    values_of,
)
from tests.support.requests.raw import RawConnection
from tests.support.slow_disk import SlowDisk

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest

Factory = Callable[..., EmbeddedBroker]
DELAY_S = 0.25
SMALL = build_batch([(None, b"v")])
VALUES = [b"%04d" % number * 5_000 for number in range(100)]  # 20 KB each, 2 MB in all


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    return SlowDisk(monkeypatch, DELAY_S)


@pytest.fixture
def broker(ottla_broker_factory: Factory, disk: SlowDisk) -> EmbeddedBroker:
    """With some segments of old records in the topic `slow`; whatever is read of them is slow."""
    broker = ottla_broker_factory()
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "slow", internal_segment_bytes=1_000_000)
        create(connection, "quick")
        for number, value in enumerate(VALUES):
            assert produce(connection, "slow", build_batch([(None, value)], timestamp=number)) == (0, number)
    disk.slow_down(broker.data_dir / "slow-0")
    return broker


def read_all(bootstrap: str, topic: str, count: int, **how: Any) -> list[bytes]:
    found: list[bytes] = []
    with RawConnection(bootstrap) as connection:
        while len(found) < count:
            answer: Any = connection.call(fetch_request({(topic, 0): len(found)}, **how), FETCH_VERSION)
            values = values_of(answer)[topic, 0]
            assert values, "what is there is given, however long it takes to read it"
            found += values
    return found


def offset_at(connection: RawConnection, topic: str, timestamp: int) -> int:
    partition = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=timestamp)
    ask = ListOffsetsRequest.Topic(name=topic, partitions=[partition])
    answer: Any = connection.call(ListOffsetsRequest(replica_id=-1, topics=[ask]), 7)
    found: int = answer.topics[0].partitions[0].offset
    return found


def latencies_during(bootstrap: str, work: Callable[[], Any], batch: bytes = SMALL) -> list[float]:
    """How long another client's produces, fetches and heartbeats take while `work` goes on."""
    taken: list[float] = []
    working = threading.Thread(target=work)
    working.start()
    with RawConnection(bootstrap) as connection:
        while working.is_alive():
            began = time.monotonic()
            _, offset = produce(connection, "quick", batch)
            answer: Any = connection.call(fetch_request({("quick", 0): offset}), FETCH_VERSION)
            assert len(values_of(answer)["quick", 0]) == 1
            connection.call(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
            taken.append(time.monotonic() - began)
    working.join()
    return sorted(taken)


@pytest.mark.parametrize("how", [{}, {"partition_max_bytes": 8_000, "isolation": 1}], ids=["sent", "read"])
def test_cold_records_hold_up_nobody_else(broker: EmbeddedBroker, disk: SlowDisk, how: dict[str, int]) -> None:
    found: list[bytes] = []
    taken = latencies_during(broker.bootstrap, lambda: found.extend(read_all(broker.bootstrap, "slow", 100, **how)))
    assert found == VALUES
    assert not disk.on_loops, disk.on_loops[0]
    assert disk.elsewhere >= 2
    assert taken[len(taken) // 2] < DELAY_S / 2


def test_a_search_by_time_holds_up_nobody_else(broker: EmbeddedBroker, disk: SlowDisk) -> None:
    found: list[int] = []

    def search() -> None:
        with RawConnection(broker.bootstrap) as connection:
            found.append(offset_at(connection, "slow", 60))

    taken = latencies_during(broker.bootstrap, search)
    assert found == [60]
    assert not disk.on_loops, disk.on_loops[0]
    assert taken[len(taken) // 2] < DELAY_S / 2


def test_slow_syncs_hold_up_nobody_else(ottla_broker_factory: Factory, disk: SlowDisk) -> None:
    """Nor those whose batches are looked into by workers, however many partitions wait for their syncs."""
    broker = ottla_broker_factory()
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "slow", partitions=8, ottla_fsync_before_ack="true")
        create(connection, "quick", cleanup_policy="compact")
        every = {("slow", index): [b"v"] for index in range(8)}
        connection.call(produce_request(every), PRODUCE_VERSION)
        for index in range(8):
            disk.slow_down(broker.data_dir / f"slow-{index}")
        large = [(b"key", bytes(limits.LOOKED_AT_ON_LOOP_BYTES))]

        def write() -> None:
            for _ in range(2):
                connection.call(produce_request(every), PRODUCE_VERSION)

        taken = latencies_during(broker.bootstrap, write, build_batch(large))
    assert disk.elsewhere >= 16 and not disk.on_loops
    assert taken[len(taken) // 2] < DELAY_S / 2


def test_cold_records_of_a_share_group_hold_up_nobody_else(ottla_broker_factory: Factory, disk: SlowDisk) -> None:
    broker = ottla_broker_factory(**SMALL_TOPICS)
    with RawConnection(broker.bootstrap) as connection, Queue(broker, connection) as queue:
        create(connection, "quick")
        alter(connection, TOPIC, queue.topic, internal_segment_bytes=50_000)
        for value in VALUES[:10]:
            queue.put(value)
        member = queue.join()
        disk.slow_down(broker.data_dir / f"{queue.topic}-0")
        found: list[int] = []

        def take() -> None:
            while sum(found) < 10:
                found.extend(last - first + 1 for first, last, _ in member.poll(max_wait_ms=1_000))

        taken = latencies_during(broker.bootstrap, take)
    assert disk.elsewhere and not disk.on_loops, disk.on_loops[0]
    assert taken[len(taken) // 2] < DELAY_S / 2


def test_partitions_that_nobody_asked_for_yet_are_read_beside_the_loop(
    ottla_broker_factory: Factory, disk: SlowDisk
) -> None:
    """After a clean start they are opened by and by."""
    broker = ottla_broker_factory()
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "slow", partitions=3)
        for index in range(3):
            produce(connection, "slow", build_batch([(None, bytes(100_000))]), index=index)
    broker.stop()
    for index in range(3):
        disk.slow_down(broker.data_dir / f"slow-{index}")
    broker.start()
    node = broker.node
    assert node is not None
    eventually(lambda: not node.partitions.unopened, "all are opened")
    assert disk.elsewhere >= 3 and not disk.on_loops, disk.on_loops[0]


def write(bootstrap: str, count: int) -> None:
    """To the topic `slow`, as three clients that want to know different things; all of it arrives in order."""

    def produce_some(acks: int) -> None:
        with RawConnection(bootstrap) as connection:
            for number in range(count):
                request = produce_request({("slow", 0): [b"%d-%d" % (acks, number)]}, acks=acks)
                if acks:
                    answer: Any = connection.call(request, PRODUCE_VERSION)
                    assert answer.responses[0].partition_responses[0].error_code == 0
                else:
                    connection.send(request_frame(request, PRODUCE_VERSION, number, "raw"))

    writers = [threading.Thread(target=produce_some, args=(acks,)) for acks in (-1, 0, 1)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def test_slow_writes_hold_up_nobody_else(ottla_broker_factory: Factory, disk: SlowDisk, tmp_path: Path) -> None:
    """Two data directories, one of which makes its writers wait: what others see of it is one write, the first."""
    broker = ottla_broker_factory(**{"log.dirs": f"{tmp_path}/a,{tmp_path}/b"})
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "quick")
        create(connection, "slow")
        produce(connection, "quick", SMALL)
        produce(connection, "slow", SMALL)
        place = {path.name: path for path in tmp_path.glob("?/*-0")}
        assert place["quick-0"].parent != place["slow-0"].parent
        before = latencies_during(broker.bootstrap, lambda: write(broker.bootstrap, 100))
        disk.slow_to_write(place["slow-0"])
        assert produce(connection, "slow", SMALL) == (0, 301)
        for _ in range(3):  # the best of some, on a busy machine
            during = latencies_during(broker.bootstrap, lambda: write(broker.bootstrap, 4))
            if is_p99_within := p99(during) < 2 * p99(before) + DELAY_S / 10:
                break
        assert is_p99_within, (p99(before), p99(during))
        assert len(disk.on_loops) <= 1 and disk.elsewhere >= 4, disk.on_loops
    values = read_all(broker.bootstrap, "slow", 1 + 300 + 1 + 12)
    for acks in (-1, 0, 1):
        prefix = b"%d-" % acks
        mine = [int(value[len(prefix) :]) for value in values[302:] if value.startswith(prefix)]
        assert mine[:4] == [0, 1, 2, 3]


def p99(taken: list[float]) -> float:
    return taken[len(taken) * 99 // 100]


def test_a_full_disk_that_is_slow(
    ottla_broker_factory: Factory, disk: SlowDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits and cannot be written is refused, and the log goes on where it was when there is room again."""
    broker = ottla_broker_factory()
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "slow")
        produce(connection, "slow", SMALL)
        disk.slow_to_write(broker.data_dir / "slow-0")
        produce(connection, "slow", SMALL)
        full = OSError(errno.ENOSPC, "no space left on device")
        with monkeypatch.context() as patch:
            patch.setattr(disk, "_wait", lambda: (_ for _ in ()).throw(full))
            assert produce(connection, "slow", SMALL)[0] == ErrorCode.KAFKA_STORAGE_ERROR
            assert produce(connection, "slow", SMALL, acks=1)[0] == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(connection, "slow", SMALL) == (0, 2)
    assert len(read_all(broker.bootstrap, "slow", 3)) == 3
