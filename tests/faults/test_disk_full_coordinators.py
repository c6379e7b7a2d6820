"""A full disk under the coordinators: nothing acknowledged is lost, nothing refused counts, and all goes on later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.faults.test_disk_full import small_disk
from tests.faults.test_group_soak import join
from tests.support.requests.raw import RawConnection
from tests.support.requests.same import Side
from tests.support.requests.transactional import Transactional

from ottla.model.errors import ErrorCode
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest

__all__ = ["small_disk"]  # a fixture

LARGE = "m" * 4096
ASK_AGAIN = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def commit(connection: RawConnection, offset: int, metadata: str = LARGE) -> int:
    partition = OffsetCommitRequest.Topic.Partition(
        partition_index=0, committed_offset=offset, committed_metadata=metadata
    )
    topic = OffsetCommitRequest.Topic(name="t", partitions=[partition])
    answer: Any = connection.call(OffsetCommitRequest(group_id="g", member_id="", topics=[topic]), 8)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def committed(connection: RawConnection) -> int:
    topic = OffsetFetchRequest.Topic(name="t", partition_indexes=[0])
    while True:
        answer: Any = connection.call(OffsetFetchRequest(group_id="g", topics=[topic]), 7)
        if answer.error_code not in ASK_AGAIN:
            assert answer.error_code == 0
            found: int = answer.topics[0].partitions[0].committed_offset
            return found


class Ballast:
    """Fills what is left of a disk."""

    def __init__(self, disk: Path) -> None:
        self._path = disk / "ballast"

    def load(self) -> None:
        with self._path.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass

    def drop(self) -> None:
        self._path.unlink()


@pytest.fixture
def settings(small_disk: Path) -> dict[str, object]:
    return {
        "log.dirs": small_disk,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
    }


def test_offsets_and_sessions_over_a_full_disk(small_disk: Path, tmp_path: Path, settings: dict[str, object]) -> None:
    ballast = Ballast(small_disk)
    with EmbeddedBroker(tmp_path, settings) as broker:
        side = Side("ottla", broker.bootstrap)
        side.create("t", 1)
        connection = RawConnection(broker.bootstrap)
        connection.call(FindCoordinatorRequest(key="g", key_type=0), 3)
        assert commit(connection, 1) == 0
        joined: Any = connection.call(join("members"), 3)
        assert joined.error_code == 0
        ballast.load()
        acknowledged = 1
        refusals = []
        for offset in range(2, 20):
            if code := commit(connection, offset):
                refusals.append(code)
            else:
                acknowledged = offset
        assert refusals and set(refusals) <= set(ASK_AGAIN)
        assert committed(connection) == acknowledged
        broker.clock.advance("1m")  # the member's session ends, but that cannot be written
        ballast.drop()
        broker.clock.advance("5s")
        assert broker.node is not None
        (host,) = broker.node.rooms.coordinators.all.groups.coordinators.hosts()
        assert host.machine.view.state.groups["members"].state_name == "Empty"
        assert committed(connection) == acknowledged
        assert commit(connection, 100) == 0
        connection.close()
        side.close()
    with EmbeddedBroker(tmp_path, settings) as broker, RawConnection(broker.bootstrap) as connection:
        assert committed(connection) == 100


def test_a_transaction_ends_although_the_disk_was_full(
    small_disk: Path, tmp_path: Path, settings: dict[str, object]
) -> None:
    ballast = Ballast(small_disk)
    with EmbeddedBroker(tmp_path, settings) as broker:
        side = Side("ottla", broker.bootstrap)
        side.create("t", 1)
        # So long an id that its record does not fit into what is left of a page.
        producer = Transactional(side, "tx" * 4096).find().begin()
        assert producer.produce("t", 0)["responses"][0]["partition_responses"][0]["error_code"] == 0
        ballast.load()
        assert producer.end(True)["error_code"] in ASK_AGAIN
        broker.clock.advance("10s")
        ballast.drop()
        broker.clock.advance("10s")
        for _ in range(100):
            code = producer.end(True)["error_code"]
            if code not in (*ASK_AGAIN, ErrorCode.CONCURRENT_TRANSACTIONS):
                break
            broker.clock.advance("1s")
        assert code == 0
        broker.clock.advance("2s")
        assert producer.describe()["transaction_state"] == "CompleteCommit"
        side.close()
