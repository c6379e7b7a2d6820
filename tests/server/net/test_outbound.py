"""What leaves a connection: in order, whole, whatever the socket takes at a time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.files.disk import FileSlice
from ottla.model import limits
from ottla.server.net.outbound import Outbound
from ottla.server.ports.os_disk import OsDisk


class PickySocket:
    """Takes a random part of what it is given, or nothing for now."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.received = bytearray()

    def _take(self, data: bytes) -> int:
        if self.rng.random() < 0.3:
            raise BlockingIOError
        taken = self.rng.randint(1, len(data))
        self.received += data[:taken]
        return taken

    def send(self, data: Any) -> int:
        return self._take(bytes(data))

    def sendmsg(self, parts: list[Any]) -> int:
        return self._take(b"".join(bytes(part) for part in parts))


class SliceFile:
    """A file whose ranges go to a PickySocket."""

    path = "slices"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def is_warm(self, position: int, size_bytes: int) -> bool:
        return True

    def read(self, position: int, size_bytes: int) -> bytes:
        return self.content[position : position + size_bytes]

    def send(self, sock: PickySocket, position: int, size_bytes: int) -> int:
        return sock._take(self.content[position : position + size_bytes])


def drain(outbound: Outbound, sock: Any) -> None:
    for _ in range(100_000):
        if outbound.flush(sock):
            return
    raise AssertionError("never drained")


@given(
    plan=st.lists(st.tuples(st.booleans(), st.integers(1, 3 * limits.INLINE_SLICE_BYTES_MAX)), max_size=12),
    seed=st.integers(0, 1 << 32),
)
def test_everything_arrives_in_order(plan: list[tuple[bool, int]], seed: int) -> None:
    content = random.Random(seed).randbytes(4 * limits.INLINE_SLICE_BYTES_MAX)
    file: Any = SliceFile(content)
    parts: list[Any] = [FileSlice(file, 7, size) if slice_ else content[:size] for slice_, size in plan]
    expected = b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)
    outbound, sock = Outbound(), PickySocket(seed)
    outbound.add([b"alone"])
    outbound.add([b"head", *parts])
    drain(outbound, sock)
    assert bytes(sock.received) == b"alonehead" + expected
    assert outbound.held_bytes == 0


def test_a_large_slice_holds_no_memory_while_it_waits(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    file = disk.open("big", create=True)
    file.append(b"x" * limits.MIB)
    outbound = Outbound()
    outbound.queue.append(FileSlice(file, 0, limits.MIB))
    assert isinstance(outbound.queue[0], FileSlice)
    disk.close()


def test_a_range_that_is_not_there_ends_the_connection() -> None:
    class Short(SliceFile):
        def send(self, sock: PickySocket, position: int, size_bytes: int) -> int:
            return 0

    outbound = Outbound()
    file: Any = Short(b"")
    outbound.queue.append(FileSlice(file, 0, limits.MIB))
    with pytest.raises(ConnectionError, match="ended before"):
        outbound.flush(PickySocket(0))


class Stuffed:
    """A socket that takes nothing."""

    def sendmsg(self, parts: list[Any]) -> int:
        raise BlockingIOError


def test_small_slices_are_read_only_when_their_turn_comes() -> None:
    file: Any = SliceFile(bytes(limits.INLINE_SLICE_BYTES_MAX))
    outbound = Outbound()
    outbound.queue.extend(FileSlice(file, 0, limits.INLINE_SLICE_BYTES_MAX) for _ in range(1_000))
    for _ in range(3):
        assert not outbound.flush(Stuffed())
        assert outbound.held_bytes == limits.SEND_RUN_BYTES


def test_a_small_slice_that_is_not_there_ends_the_connection() -> None:
    file: Any = SliceFile(b"short")
    outbound = Outbound()
    outbound.queue.append(FileSlice(file, 0, 100))
    with pytest.raises(ConnectionError, match="ended before"):
        outbound.flush(PickySocket(0))


def test_a_fast_reader_does_not_keep_the_loop_to_itself() -> None:
    class Swallower:
        """A file whose ranges go to a socket that takes everything."""

        path = "large"

        def __init__(self) -> None:
            self.sent = 0

        def is_warm(self, position: int, size_bytes: int) -> bool:
            return True

        def send(self, sock: Any, position: int, size_bytes: int) -> int:
            taken = min(size_bytes, limits.MIB)
            self.sent += taken
            return taken

    file: Any = Swallower()
    outbound = Outbound()
    outbound.queue.append(FileSlice(file, 0, 3 * limits.SEND_PER_TURN_BYTES))
    turns = 1
    while not outbound.flush(None):
        assert file.sent == turns * limits.SEND_PER_TURN_BYTES
        turns += 1
    assert turns == 3
