"""Dead letters, and share groups: however many records are in a batch, nobody else waits for those who look at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.share_talk import REJECT, Queue
from tests.server.talk import create, delete, eventually, produce, produce_request
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import NO_OFFSET, Record

VERSION = 9
MANY = 200_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    data: Path = tmp_path_factory.mktemp("node")
    with MeasuredNode(data, {"message.max.bytes": 32 * limits.MIB}) as started, started.connect() as connection:
        for action in ("dlq", "tag", "reject"):
            create(connection, action, 1, ottla_schema_validation="id", ottla_schema_validation_action=action)
        create(connection, "dlq.dlq", 1)
        yield started


def worst(node: MeasuredNode, topic: str, count: int) -> tuple[float, set[ErrorCode]]:
    """The dearest callback while a batch of so many bad records is produced."""
    batch = build_batch([(b"k", b"bad")] * count, codec=Codec.ZSTD, timestamp=node.node.ports.now_ms())
    said: set[ErrorCode] = set()
    with node.connect() as connection:

        def attack() -> None:
            answer: Any = connection.call(produce_request({(topic, 0): batch}), VERSION)
            said.add(ErrorCode(answer.responses[0].partition_responses[0].error_code))

        def attempt() -> Callback:
            return node.cost(attack)

        return best_of(attempt).cpu_ms, said


@pytest.mark.parametrize(
    ("topic", "count", "code"),
    [
        ("dlq", 30_000, ErrorCode.NONE),
        ("dlq", 200_000, ErrorCode.MESSAGE_TOO_LARGE),  # their letters would be too much
        ("tag", 100_000, ErrorCode.NONE),
        ("reject", 200_000, ErrorCode.INVALID_RECORD),
    ],
)
def test_very_many_records_that_break_a_contract(node: MeasuredNode, topic: str, count: int, code: ErrorCode) -> None:
    cpu_ms, said = worst(node, topic, count)
    assert said == {code}
    assert cpu_ms <= BUDGET_MS


def test_a_letter_of_a_batch_of_very_many_records(node: MeasuredNode) -> None:
    """A share group gives up one of them; all have to be walked through."""
    with (
        node.connect() as connection,
        Queue(node, connection, ottla_share_dlq_topic="graves") as queue,
    ):
        create(connection, "graves")
        batch = build_batch([(b"k", b"")] * MANY, codec=Codec.ZSTD, timestamp=node.node.ports.now_ms())
        assert produce(connection, queue.topic, batch)[0] == 0
        member = queue.join()
        rejected = iter([first for first, _, _ in eventually(member.poll)] + [1, 2])

        def give_up() -> None:
            offset = next(rejected)
            assert member.acknowledge((offset, offset, [REJECT])) == 0

        assert best_of(lambda: node.cost(give_up)).cpu_ms <= BUDGET_MS


def test_a_share_group_that_begins_in_a_batch_of_very_many_records(node: MeasuredNode) -> None:
    now_ms = node.node.ports.now_ms()
    records = [Record(NO_OFFSET, now_ms - 7_200_000, None, b"") for _ in range(MANY)]
    batch = build_batch([*records, Record(NO_OFFSET, now_ms, None, b"")], codec=Codec.ZSTD)
    with node.connect() as connection:

        def begin() -> Callback:
            with Queue(node, connection, share_auto_offset_reset="by_duration:PT1H") as queue:
                assert produce(connection, queue.topic, batch)[0] == 0
                member = queue.join()

                def first() -> None:
                    assert eventually(member.poll) == [(MANY, MANY, 1)]

                return node.cost(first)

        assert best_of(begin).cpu_ms <= BUDGET_MS


def test_very_many_records_among_the_registered_schemas(node: MeasuredNode) -> None:
    """Anybody who may write to `_schemas` can put them there, or a batch that unpacks to very much."""
    noop = (b'{"keytype":"NOOP","magic":0}', None)
    many = build_batch([noop] * 50_000, codec=Codec.ZSTD, timestamp=node.node.ports.now_ms())
    bomb = build_batch([(noop[0], bytes(100 * limits.MIB))], codec=Codec.ZSTD, timestamp=node.node.ports.now_ms())

    def read() -> Callback:
        with node.connect() as connection:
            create(connection, "_schemas")
            assert produce(connection, "_schemas", many)[0] == produce(connection, "_schemas", bomb)[0] == 0

            def judged() -> bool:
                return produce(connection, "reject", [b"bad"])[0] == ErrorCode.INVALID_RECORD

            cost = node.cost(lambda: eventually(judged))
            delete(connection, "_schemas")
            return cost

    assert best_of(read).cpu_ms <= BUDGET_MS
