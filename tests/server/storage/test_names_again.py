"""A topic under the name of one that was deleted, and a kill before the checkpoints were due: what they say of the old
one is not believed of the new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import FETCH_VERSION, create, delete, fetch_request, produce, whole
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import RawConnection

from ottla.wire.messages.records.delete_records import DeleteRecordsRequest


@pytest.fixture
def node(tmp_path: Path) -> Iterator[OttlaNode]:
    node = OttlaNode(tmp_path / "data")
    try:
        yield node.start()
    finally:
        node.kill()


def begin_late(connection: RawConnection) -> None:
    """A topic that begins at an offset of its own, which is on disk."""
    create(connection, "t")
    for _ in range(20):
        assert produce(connection, "t", [b"old"])[0] == 0
    topic = DeleteRecordsRequest.Topic
    wanted = topic(name="t", partitions=[topic.Partition(partition_index=0, offset=10)])
    answer: Any = connection.call(DeleteRecordsRequest(topics=[wanted], timeout_ms=1000), 2)
    assert answer.topics[0].partitions[0].error_code == 0


def read(connection: RawConnection) -> list[tuple[int, bytes | None]]:
    answer: Any = connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
    part = answer.responses[0].partitions[0]
    assert part.error_code == 0, part
    return [(record.offset, record.value) for record in whole(bytes(part.records))]


def test_what_was_written_to_the_new_one_is_there_after_a_kill(node: OttlaNode) -> None:
    with RawConnection(node.bootstrap) as connection:
        begin_late(connection)
        delete(connection, "t")
        create(connection, "t")
        for _ in range(5):
            assert produce(connection, "t", [b"new"])[0] == 0
    node.kill()
    node.start()
    with RawConnection(node.bootstrap) as connection:
        assert read(connection) == [(offset, b"new") for offset in range(5)]


def test_one_that_is_made_after_the_kill_begins_at_its_beginning(node: OttlaNode) -> None:
    with RawConnection(node.bootstrap) as connection:
        begin_late(connection)
        delete(connection, "t")
    for _ in range(2):  # what the first life knew better must be on disk for the second
        node.kill()
        node.start()
    with RawConnection(node.bootstrap) as connection:
        create(connection, "t")
        assert produce(connection, "t", [b"new"]) == (0, 0)
    node.kill()
    node.start()
    with RawConnection(node.bootstrap) as connection:
        assert read(connection) == [(0, b"new")]
