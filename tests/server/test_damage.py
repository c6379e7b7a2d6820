"""A log that is damaged on disk: nothing that was acknowledged goes without a word."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import FETCH_VERSION, create, delete, fetch_request, produce, values_of
from tests.support.raw import RawConnection

from ottla.log.checkpoint import CLEAN_SHUTDOWN
from ottla.log.disk import StorageError
from ottla.model.errors import ErrorCode
from ottla.records.batch import MAGIC_AT, headers
from ottla.server.osdisk import OsFile
from ottla.testing.broker import Broker

SEGMENT = f"{0:020d}.log"


def fill(broker: Broker) -> None:
    with broker, RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 2)
        for number in range(3):
            assert produce(connection, "t", [b"%d" % number]) == (0, number)
            assert produce(connection, "t", [b"other"], index=1) == (0, number)


def last_batch(path: Path) -> int:
    """Where it begins."""
    content = path.read_bytes()
    return [position for position, _ in headers(memoryview(content))][-1]


def error_of(connection: RawConnection, index: int) -> int:
    answer: Any = connection.call(fetch_request({("t", index): 0}), FETCH_VERSION)
    return int(answer.responses[0].partitions[0].error_code)


def test_what_was_closed_in_order_is_not_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The partition is refused, start after start, until somebody decides; others go on."""
    broker = Broker(tmp_path)
    fill(broker)
    path = tmp_path / "t-0" / SEGMENT
    content = bytearray(path.read_bytes())
    content[last_batch(path) + MAGIC_AT] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        caplog.clear()
        with broker, RawConnection(broker.bootstrap) as connection:
            assert error_of(connection, 0) == ErrorCode.KAFKA_STORAGE_ERROR
            assert produce(connection, "t", [b"x"])[0] == ErrorCode.KAFKA_STORAGE_ERROR
            assert error_of(connection, 1) == ErrorCode.NONE
        assert caplog.text.count("but the log was closed in order at offset 3") == 1
        assert path.read_bytes() == content
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    with broker, RawConnection(broker.bootstrap) as connection:
        assert values_of(connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)) == {("t", 0): [b"0", b"1"]}
        assert "t-0 was damaged and lost records that had been synced: it ends at offset 2, not at 3" in caplog.text
        assert produce(connection, "t", [b"x"]) == (0, 2)


def test_a_topic_of_the_same_name_begins_anew(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    fill(broker)
    (tmp_path / "t-0" / SEGMENT).write_bytes(b"")
    with broker, RawConnection(broker.bootstrap) as connection:
        assert error_of(connection, 0) == ErrorCode.KAFKA_STORAGE_ERROR
        delete(connection, "t")
        create(connection, "t")
        assert produce(connection, "t", [b"x"]) == (0, 0)


def test_a_recovery_that_failed_is_owed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A partition that could not be recovered after a crash is not taken for one that was closed in order."""
    broker = Broker(tmp_path)
    fill(broker)
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    with (tmp_path / "t-0" / SEGMENT).open("ab") as file:
        file.write(b"torn")
    read = OsFile.read

    def fail(file: OsFile, position: int, size_bytes: int) -> bytes:
        if file.path.startswith("t-0/") and file.path.endswith(".log"):
            raise StorageError(errno.EIO, "no")
        return read(file, position, size_bytes)

    with monkeypatch.context() as patch:
        patch.setattr(OsFile, "read", fail)
        broker.start()
        broker.stop()
    assert "t-0 cannot be opened" in caplog.text
    with broker, RawConnection(broker.bootstrap) as connection:
        assert values_of(connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)) == {("t", 0): [b"0", b"1", b"2"]}
        assert "t-0: 4 bytes behind offset 3 were no whole batch; cut off" in caplog.text
        assert produce(connection, "t", [b"x"]) == (0, 3)
