"""ListOffsets by time: what somebody else put into a batch holds nobody up who looks for a record in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import create, produce
from tests.stalls.measuring.measure import BUDGET_MS, MeasuredNode, best_of

from ottla.model import limits
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Record
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest

MANY = 100_000
MAX_TIMESTAMP = -3
OLDER, OLDER_BYTES = 400, 500_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    data: Path = tmp_path_factory.mktemp("node")
    with MeasuredNode(data, {"message.max.bytes": 32 * limits.MIB}) as started, started.connect() as connection:
        create(connection, "t", 5)
        many = build_batch([Record(-1, 1 + at, None, b"") for at in range(MANY)], codec=Codec.ZSTD)
        bomb = build_batch([Record(-1, 5, None, bytes(40 * limits.MIB)), Record(-1, 6, None, b"")], codec=Codec.GZIP)
        huge = build_batch([Record(-1, 5, None, bytes(80 * limits.MIB)), Record(-1, 6, None, b"")], codec=Codec.ZSTD)
        few = build_batch([Record(-1, 5, None, b"a"), Record(-1, 6, None, b"b")], codec=Codec.GZIP)
        for index, batch in enumerate([many, bomb, huge, few]):
            assert produce(connection, "t", batch, index=index)[0] == 0
        # What is looked for comes last; all before it is older, and no index says so.
        older = build_batch([Record(-1, 4, None, bytes(OLDER_BYTES))])
        for batch in [few, *[older] * OLDER, build_batch([Record(-1, 7, None, b"")])]:
            assert produce(connection, "t", bytearray(batch), index=4)[0] == 0
        yield started


@pytest.mark.parametrize(
    ("index", "timestamp", "found"),
    [
        (0, MANY, (MANY - 1, MANY)),
        (0, MAX_TIMESTAMP, (MANY - 1, MANY)),
        (0, MANY + 1, (-1, -1)),
        (1, 6, (1, 6)),
        (2, 6, (0, 6)),  # too large to be unpacked for this: where its batch begins
        (3, 6, (1, 6)),
        (4, 7, (OLDER + 2, 7)),
    ],
)
def test_a_search_by_time(node: MeasuredNode, index: int, timestamp: int, found: tuple[int, int]) -> None:
    ask = ListOffsetsRequest.Topic.Partition(partition_index=index, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[ListOffsetsRequest.Topic(name="t", partitions=[ask])]
    )
    with node.connect() as connection:

        def search() -> None:
            answer: Any = connection.call(request, 7)
            (told,) = answer.topics[0].partitions
            assert (told.error_code, told.offset, told.timestamp) == (0, *found)

        assert best_of(lambda: node.cost(search)).cpu_ms <= BUDGET_MS
