"""A node as a whole: it starts or leaves everything as it was, and it stops whatever its clients are doing."""

from __future__ import annotations

import resource
import socket
import threading
from pathlib import Path

import pytest
from tests.server.talk import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Pipeline,
    create,
    eventually,
    fetch_request,
    produce,
    produce_request,
    values_of,
)
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import Closed, RawConnection

from ottla.log.files.checkpoint import CLEAN_SHUTDOWN
from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.server.ports.system import connections_max, open_files_max
from ottla.testing.broker import EmbeddedBroker

LONG_MS = 600_000


def test_a_start_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path / "data")
    with broker, RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        produce(connection, "t", [b"x"])
    threads = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match="in use"):
            EmbeddedBroker(broker.data_dir, {"listeners": address}).start()
    eventually(lambda: threading.active_count() <= threads, "no thread is left")
    assert (broker.data_dir / CLEAN_SHUTDOWN).exists(), "the next start needs no recovery"
    with broker, RawConnection(broker.bootstrap) as connection:
        assert produce(connection, "t", [b"y"]) == (0, 1)


def test_one_data_directory_one_node(ottla_broker: EmbeddedBroker, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="another node uses"):
        EmbeddedBroker(ottla_broker.data_dir).start()
    other = OttlaNode(tmp_path / "other")
    other.data_dir.symlink_to(ottla_broker.data_dir)
    with pytest.raises(AssertionError, match="another node uses"):
        other.start()
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t")
        assert produce(connection, "t", [b"x"]) == (0, 0), "the first one goes on undisturbed"
    ottla_broker.restart()


def test_a_stop_does_not_wait_for_those_who_wait(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection, Pipeline(ottla_broker.bootstrap) as pipe:
        create(connection, "t")
        for _ in range(100):
            pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
        assert ottla_broker.node is not None
        waiters = ottla_broker.node.storage.waiters
        eventually(lambda: waiters.count > 0, "they wait")
        ottla_broker.stop()
        assert waiters.count == 0
        with pytest.raises(Closed):
            pipe.answer()
    assert (ottla_broker.data_dir / CLEAN_SHUTDOWN).exists()


def test_sigterm_under_load(tmp_path: Path) -> None:
    """Busy producers (some with fsync), long polls, readers that take nothing: it is down in time, nothing is lost."""
    node = OttlaNode(tmp_path).start()
    acknowledged: dict[str, int] = {}
    with RawConnection(node.bootstrap) as connection:
        create(connection, "plain", 4)
        create(connection, "synced", 4, ottla_fsync_before_ack="true")
        create(connection, "large")
        for _ in range(10):
            produce(connection, "large", [b"x" * 900_000])

    def pump(topic: str, index: int) -> None:
        try:
            with Pipeline(node.bootstrap) as pipe:
                request = produce_request({(topic, index): [b"x" * 1_000]})
                pipe.send(request, PRODUCE_VERSION)
                while True:
                    pipe.send(request, PRODUCE_VERSION)
                    found = pipe.answer().responses[0].partition_responses[0]
                    assert found.error_code == 0
                    acknowledged[f"{topic}-{index}"] = found.base_offset + 1
        except (Closed, OSError):
            pass

    threads = [
        threading.Thread(target=pump, args=(topic, index)) for topic in ("plain", "synced") for index in range(4)
    ]
    for thread in threads:
        thread.start()
    polls = [Pipeline(node.bootstrap) for _ in range(20)]
    for poll in polls:
        poll.send(fetch_request({("plain", 0): 1 << 40}, max_wait_ms=LONG_MS), FETCH_VERSION)
        poll.send(fetch_request({("large", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
    eventually(lambda: len(acknowledged) == 8 and min(acknowledged.values()) > 20, "all are busy")
    node.stop()  # within ten seconds, and with a good exit code
    for thread in threads:
        thread.join(20)
    for poll in polls:
        poll.close()
    assert (node.data_dir / CLEAN_SHUTDOWN).exists()
    with EmbeddedBroker(node.data_dir) as broker, RawConnection(broker.bootstrap) as connection:
        for name, end in acknowledged.items():
            topic, _, index = name.rpartition("-")
            answer = connection.call(fetch_request({(topic, int(index)): end - 1}), FETCH_VERSION)
            assert values_of(answer)[topic, int(index)], f"{name} lost {end - 1}"


def test_files_leave_descriptors_for_connections() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert open_files_max(1 << 40, 1) <= soft / 2
    assert open_files_max(100, 4) == 25
    assert open_files_max(100, 1) == 100


@pytest.mark.parametrize("descriptors", [256, 1_024, 20_000, 65_536, 2**63 - 1])
def test_connections_leave_descriptors_for_files(descriptors: int) -> None:
    files = min(limits.OPEN_FILES_MAX, descriptors // 2)
    connections = connections_max(limits.OPEN_FILES_MAX, descriptors)
    assert files + connections + limits.DESCRIPTORS_SPARE_MIN <= descriptors
    assert descriptors // 4 <= connections or connections == limits.CONNECTIONS_MAX
