"""The worst produces: however a batch is packed and whatever its topic asks for, nobody else waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import create, produce_request
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of
from tests.support.requests.raw import Closed

from ottla.log.look import Look
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.server.storage.batch_looks import BatchLooks
from ottla.wire.frame import request_frame

VERSION = 9
HOUR_MS = 3_600_000
PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    data: Path = tmp_path_factory.mktemp("node")
    with MeasuredNode(data, {"message.max.bytes": 32 * limits.MIB}) as started, started.connect() as connection:
        create(connection, "plain", 50)
        create(connection, "compacted", 50, cleanup_policy="compact")
        create(connection, "zstd", 3, compression_type="zstd")
        create(connection, "gzip", 3, compression_type="gzip", compression_gzip_level=9)
        create(connection, "recent", 3, message_timestamp_before_max_ms=HOUR_MS)
        yield started


def codes(answer: Any) -> set[ErrorCode]:
    return {ErrorCode(each.error_code) for topic in answer.responses for each in topic.partition_responses}


def worst(
    node: MeasuredNode, topic: str, partitions: int, batch: bytearray, *, first: int = 0
) -> tuple[float, set[ErrorCode]]:
    """The dearest callback while the batch is produced to all of these partitions, and what was answered."""
    said: set[ErrorCode] = set()

    def attempt() -> Callback:
        cost, codes = produce_once(node, topic, partitions, batch, first=first)
        said.update(codes)
        return cost

    return best_of(attempt).cpu_ms, said


def produce_once(
    node: MeasuredNode, topic: str, partitions: int, batch: bytearray, *, first: int = 0
) -> tuple[Callback, set[ErrorCode]]:
    said: set[ErrorCode] = set()
    request = produce_request({(topic, index): batch for index in range(first, first + partitions)})
    with node.connect() as connection:
        cost = node.cost(lambda: said.update(codes(connection.call(request, VERSION))))
    return cost, said


def now_ms(node: MeasuredNode) -> int:
    return node.node.ports.now_ms()


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_that_is_dated_ahead(node: MeasuredNode, codec: Codec) -> None:
    """What the header decides is decided by it: nothing is unpacked."""
    bomb = build_batch(
        [(b"k", bytes(40 * limits.MIB)), (b"k", b"v")], codec=codec, timestamp=now_ms(node) + 2 * HOUR_MS
    )
    cpu_ms, said = worst(node, "plain", 50 if codec in (Codec.GZIP, Codec.ZSTD) else 5, bomb)
    assert said == {ErrorCode.INVALID_TIMESTAMP}
    assert cpu_ms <= BUDGET_MS


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_for_a_compacted_topic(node: MeasuredNode, codec: Codec) -> None:
    """40 MiB each: the first is looked into, and then the request's share is used up."""
    bomb = build_batch([(b"k", bytes(40 * limits.MIB))], codec=codec, timestamp=now_ms(node))
    cpu_ms, said = worst(node, "compacted", 50 if codec in (Codec.GZIP, Codec.ZSTD) else 5, bomb)
    assert ErrorCode.NONE in said and said <= {ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS}
    assert cpu_ms <= BUDGET_MS


def test_a_batch_that_unpacks_to_too_much(node: MeasuredNode) -> None:
    bomb = build_batch([(b"k", bytes(limits.LOOKED_INTO_BYTES_MAX))], codec=Codec.ZSTD, timestamp=now_ms(node))
    cpu_ms, said = worst(node, "compacted", 1, bomb)
    assert said == {ErrorCode.MESSAGE_TOO_LARGE}
    assert cpu_ms <= BUDGET_MS


@pytest.mark.parametrize("topic", ["compacted", "recent", "zstd", "gzip"])
def test_very_many_small_records(node: MeasuredNode, topic: str) -> None:
    """They are welcome, a step at a time."""
    many = build_batch([(b"k", b"")] * 100_000, codec=Codec.LZ4, timestamp=now_ms(node))
    cpu_ms, said = worst(node, topic, 1, many)
    assert said == {ErrorCode.NONE}
    assert cpu_ms <= BUDGET_MS


def test_a_look_on_the_loop_would_be_seen(node: MeasuredNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: the loop itself unpacked and walked whatever came. (The simulator does not see it: its clock stands
    still within a step.)"""

    def here(self: BatchLooks, batch: Any, header: Any, config: Any, now_ms: int, name: str) -> Look:
        return Look(batch, header, config, now_ms, name, limits.LOOKED_INTO_BYTES_MAX).whole()

    monkeypatch.setattr(BatchLooks, "here", here)
    many = build_batch([(b"k", b"")] * 200_000, codec=Codec.LZ4, timestamp=now_ms(node))
    cost, said = produce_once(node, "compacted", 1, many)
    assert said == {ErrorCode.NONE}
    assert cost.cpu_ms > BUDGET_MS


def test_more_records_than_may_be_looked_at(node: MeasuredNode) -> None:
    many = build_batch([(b"k", b"")] * (limits.LOOKED_INTO_RECORDS_MAX + 1), codec=Codec.ZSTD, timestamp=now_ms(node))
    cpu_ms, said = worst(node, "compacted", 1, many)
    assert said == {ErrorCode.MESSAGE_TOO_LARGE}
    assert cpu_ms <= BUDGET_MS


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_very_many_short_looks(node: MeasuredNode, codec: Codec) -> None:
    """Each could be taken on the loop, but not all of them in one turn."""
    batch = build_batch([(b"k", b"v")] * 900, codec=codec, timestamp=now_ms(node))
    cpu_ms, said = worst(node, "compacted", 50, batch)
    assert said == {ErrorCode.NONE}
    assert cpu_ms <= BUDGET_MS


def test_very_many_batches_dated_ahead(node: MeasuredNode) -> None:
    ahead = build_batch([(b"k", b"v")] * 16, codec=Codec.GZIP, timestamp=now_ms(node) + 2 * HOUR_MS)
    cpu_ms, said = worst(node, "plain", 50, ahead)
    assert said == {ErrorCode.INVALID_TIMESTAMP}
    assert cpu_ms <= BUDGET_MS


def test_very_many_partitions_that_are_not_there(node: MeasuredNode) -> None:
    cpu_ms, said = worst(node, "plain", 20_000, build_batch([(b"k", b"v")], timestamp=now_ms(node)), first=50)
    assert said == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert cpu_ms <= BUDGET_MS


def test_very_many_partitions(node: MeasuredNode) -> None:
    """Nobody has used them before: their logs have to be opened, too."""
    unused = (f"wide-{number}" for number in range(3))
    batch = build_batch([(b"k", b"v")], timestamp=now_ms(node))
    said: set[ErrorCode] = set()

    def attempt() -> Callback:
        name = next(unused)
        with node.connect() as connection:
            create(connection, name, 500)
        cost, codes = produce_once(node, name, 500, batch)
        said.update(codes)
        return cost

    assert best_of(attempt).cpu_ms <= BUDGET_MS
    assert said == {ErrorCode.NONE}


def test_what_follows_a_wide_produce_comes_after_it(node: MeasuredNode) -> None:
    """Of two batches for one partition the last one is taken, however far apart they are."""
    with node.connect() as connection:
        create(connection, "ordered", 1)
        few, many = ([(b"k", b"v")] * count for count in (2, 3))
        batches = {("plain", 10_000 + index): build_batch(few, timestamp=now_ms(node)) for index in range(1_000)}
        wide = produce_request({("ordered", 0): build_batch(few, timestamp=now_ms(node)), **batches})
        wide.topic_data += produce_request({("ordered", 0): build_batch(many, timestamp=now_ms(node))}).topic_data
        narrow = produce_request({("ordered", 0): build_batch(few, timestamp=now_ms(node))})
        connection.send(request_frame(wide, VERSION, 1, "raw") + request_frame(narrow, VERSION, 2, "raw"))
        first, second = (connection.decode(0, VERSION, connection.receive(), number) for number in (1, 2))
    told = [
        [(each.error_code, each.base_offset) for topic in answer.responses for each in topic.partition_responses]
        for answer in (first, second)
    ]
    assert len(told[0]) == 1_001
    assert told[0].count((0, 0)) == 1 and told[0].count((ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)) == 1_000
    assert told[1] == [(0, 3)]


def test_a_wide_produce_without_an_answer(node: MeasuredNode) -> None:
    with node.connect() as connection:
        create(connection, "unanswered", 300)
        batch = build_batch([(b"k", b"v")], timestamp=now_ms(node))
        wide = produce_request({("unanswered", index): batch for index in range(300)}, acks=0)
        connection.send(request_frame(wide, VERSION, 1, "raw"))
        narrow: Any = connection.call(produce_request({("unanswered", 299): batch}), VERSION)
        assert narrow.responses[0].partition_responses[0].base_offset == 1
        refused = produce_request({("plain", 1_000 + index): batch for index in range(300)}, acks=0)
        connection.send(request_frame(refused, VERSION, 1, "raw"))
        with pytest.raises(Closed):
            connection.receive()
