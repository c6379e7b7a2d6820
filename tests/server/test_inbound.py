"""The receive buffer: frames are found where they lie, memory follows the data that came."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model import limits
from ottla.server.inbound import FrameTooLarge, InboundBuffer
from ottla.server.memory import RequestMemory


def feed(buffer: InboundBuffer, data: bytes) -> list[bytes]:
    """Gives `data` to the buffer in as many reads as it wants; returns the frames found."""
    frames = []
    while data:
        space = buffer.space()
        assert space is not None
        taken = min(len(space), len(data))
        space[:taken] = data[:taken]
        buffer.end += taken
        data = data[taken:]
        while (frame := buffer.next_frame()) is not None:
            frames.append(bytes(frame))
    return frames


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 3 * limits.RECEIVE_BUFFER_BYTES), max_size=6), chunk=st.integers(100, 200_000))
def test_frames_come_out_as_they_went_in(sizes: list[int], chunk: int) -> None:
    bodies = [bytes([size % 251]) * size for size in sizes]
    buffer = InboundBuffer(RequestMemory(1 << 30), 1 << 24)
    data = framed(*bodies)
    found = []
    for start in range(0, len(data), chunk):
        found += feed(buffer, data[start : start + chunk])
    assert found == bodies


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_absurd_lengths_are_refused_before_anything_is_allocated(size: int) -> None:
    memory = RequestMemory(1 << 30)
    buffer = InboundBuffer(memory, 1000)
    with pytest.raises(FrameTooLarge, match=str(size)):
        feed(buffer, struct.pack(">i", size))
    assert memory.used_bytes == 0


def test_a_giant_frame_earns_its_memory_byte_by_byte() -> None:
    memory = RequestMemory(1 << 30)
    buffer = InboundBuffer(memory, 100 * limits.MIB)
    feed(buffer, struct.pack(">i", 100 * limits.MIB) + b"x" * 1000)
    assert memory.used_bytes <= limits.RECEIVE_EAGER_BYTES
    feed(buffer, b"x" * (6 * limits.MIB))
    assert memory.used_bytes <= 4 * limits.RECEIVE_EAGER_BYTES


def test_without_budget_there_is_no_space_until_somebody_gives_back() -> None:
    memory = RequestMemory(2 * limits.MIB)
    first, second = InboundBuffer(memory, 1 << 24), InboundBuffer(memory, 1 << 24)
    big = framed(b"x" * (limits.MIB * 3 // 2))
    feed(first, big[:100])
    first.space()
    feed(second, big[:100])
    assert second.space() is None
    memory.wait(second.wish_bytes, second.granted)
    first.release()
    assert not memory.waiting
    assert second.space() is not None
    assert feed(second, big[100:]) == [big[4:]]


def test_memory_goes_to_whoever_waits_longest() -> None:
    memory = RequestMemory(100)
    assert memory.reserve(60)
    granted: list[str] = []
    memory.wait(80, lambda size: granted.append(f"large {size}"))
    memory.wait(10, lambda size: granted.append(f"small {size}"))
    assert not memory.reserve(10), "somebody waits"
    memory.release(30)
    assert granted == [], "the small one does not overtake"
    memory.release(30)
    assert granted == ["large 80", "small 10"]
    assert memory.used_bytes == 90


def test_who_gives_up_waiting_makes_way() -> None:
    memory = RequestMemory(100)
    assert memory.reserve(60)
    granted: list[int] = []
    memory.wait(80, print)
    memory.wait(40, granted.append)
    memory.forget(print)
    memory.forget(print)
    assert granted == [40]


def test_a_lone_request_larger_than_the_budget_is_let_through() -> None:
    memory = RequestMemory(100)
    assert memory.reserve(1)
    granted: list[int] = []
    memory.wait(1000, granted.append)
    memory.release(1)
    assert granted == [1000]


def test_while_others_wait_nothing_is_read_beyond_a_frame() -> None:
    memory = RequestMemory(1 << 30)
    buffer = InboundBuffer(memory, 1 << 24)
    body = b"x" * limits.MIB
    feed(buffer, framed(body)[:100])
    buffer.space()  # grows
    memory.wait(1 << 40, print)
    assert buffer.missing == len(body) + 4 - 100
    assert len(buffer.space() or b"") == buffer.missing
    assert feed(buffer, framed(body)[100:]) == [body]
    buffer.shrink()
    assert not buffer.holds_memory


def test_a_buffer_without_a_frame_is_taken_back_when_others_need_it() -> None:
    memory = RequestMemory(2 * limits.MIB)
    idle, busy, third = (InboundBuffer(memory, 1 << 24) for _ in range(3))
    assert feed(idle, framed(b"x" * limits.MIB)) == [b"x" * limits.MIB]
    feed(busy, framed(b"x" * limits.MIB)[:-1])
    assert idle.holds_memory and busy.holds_memory
    feed(third, framed(b"x" * limits.MIB)[:100])
    assert third.space() is None
    memory.wait(third.wish_bytes, third.granted)
    assert not memory.waiting, "at once"
    assert busy.holds_memory and not idle.holds_memory
    assert feed(third, framed(b"x" * limits.MIB)[100:]) == [b"x" * limits.MIB]
    assert feed(busy, b"x") == [b"x" * limits.MIB]


def test_a_quiet_connection_gives_its_large_buffer_back() -> None:
    memory = RequestMemory(1 << 30)
    buffer = InboundBuffer(memory, 1 << 24)
    feed(buffer, framed(b"x" * limits.MIB))
    assert buffer.holds_memory
    buffer.shrink()
    assert not buffer.holds_memory
    assert memory.used_bytes == 0
    assert buffer.capacity == 0, "not even the small one: most connections are quiet"
    assert feed(buffer, framed(b"again")) == [b"again"]
    assert buffer.capacity == limits.RECEIVE_BUFFER_BYTES
    assert memory.used_bytes == 0


def test_a_buffer_in_the_middle_of_a_frame_does_not_shrink() -> None:
    memory = RequestMemory(1 << 30)
    buffer = InboundBuffer(memory, 1 << 24)
    data = framed(b"x" * limits.MIB)
    feed(buffer, data[:500_000])
    buffer.space()
    buffer.shrink()
    assert feed(buffer, data[500_000:]) == [b"x" * limits.MIB]
