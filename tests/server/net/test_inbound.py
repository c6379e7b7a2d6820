"""The receive buffer: frames are found where they lie, memory follows the data that came."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model import limits
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.net.inbound import FrameTooLarge, InboundBuffer


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


@pytest.mark.parametrize("size", [limits.RECEIVE_BUFFER_BYTES + 1, limits.MIB, 4 * limits.MIB, 100 * limits.MIB])
def test_a_frame_earns_its_memory_with_the_bytes_that_came(size: int) -> None:
    memory = RequestMemory(1 << 30)
    buffer = InboundBuffer(memory, 100 * limits.MIB)
    feed(buffer, struct.pack(">i", size) + b"x")
    buffer.space()
    assert memory.used_bytes == 0, "a length is only a claim"
    came, step = 5, 50_000
    while came + step < min(size, 6 * limits.MIB):
        feed(buffer, b"x" * step)
        came += step
        assert memory.used_bytes <= 2 * came + limits.RECEIVE_BUFFER_BYTES


def test_without_budget_there_is_no_space_until_somebody_gives_back() -> None:
    memory = RequestMemory(2 * limits.MIB)
    favoured, second = partly_read(memory), InboundBuffer(memory, 1 << 24)
    big = framed(b"x" * (limits.MIB * 3 // 2))
    feed(second, big[: limits.RECEIVE_BUFFER_BYTES])
    assert second.space() is None
    memory.wait(second.wish_bytes, second, second.granted)
    assert memory.waiting
    favoured.release()
    assert not memory.waiting
    assert second.space() is not None
    assert feed(second, big[limits.RECEIVE_BUFFER_BYTES :]) == [big[4:]]


def partly_read(memory: RequestMemory) -> InboundBuffer:
    """One that holds the beginning of a frame and is favoured, since the budget does not suffice for it."""
    buffer = InboundBuffer(memory, 1 << 24)
    assert memory.reserve(memory.limit_bytes, OTHER)
    feed(buffer, framed(b"x" * limits.MIB)[: limits.RECEIVE_BUFFER_BYTES])
    assert buffer.space() is None
    memory.wait(buffer.wish_bytes, buffer, buffer.granted)
    assert buffer.space() is not None, "the first one gets on all the same"
    return buffer


class Keeps:
    """Somebody who gives nothing back."""

    def shrink(self) -> None:
        pass


OTHER = Keeps()


def test_memory_goes_to_whoever_waits_longest() -> None:
    memory = RequestMemory(100)
    first, large, small = Keeps(), Keeps(), Keeps()
    assert memory.reserve(60, OTHER)
    granted: list[str] = []
    memory.wait(50, first, lambda size: granted.append(f"first {size}"))
    memory.wait(80, large, lambda size: granted.append(f"large {size}"))
    memory.wait(10, small, lambda size: granted.append(f"small {size}"))
    assert granted == ["first 50"], "one may exceed the budget"
    assert not memory.reserve(10, OTHER), "somebody waits"
    assert memory.reserve(10, first), "until it has all that it needs"
    memory.release(30, OTHER)
    assert granted == ["first 50"], "the small one does not overtake"
    memory.release(60, first)
    assert granted == ["first 50", "large 80"], "the next one may exceed it"
    memory.release(30, OTHER)
    assert granted == ["first 50", "large 80", "small 10"]
    assert memory.used_bytes == 90


def test_who_gives_up_waiting_makes_way() -> None:
    memory = RequestMemory(100)
    favoured, leaves, stays = Keeps(), Keeps(), Keeps()
    assert memory.reserve(60, OTHER)
    memory.wait(50, favoured, print)
    memory.release(60, OTHER)
    granted: list[int] = []
    memory.wait(80, leaves, print)
    memory.wait(40, stays, granted.append)
    assert not granted
    memory.forget(leaves)
    memory.forget(leaves)
    assert granted == [40]


def test_frames_that_have_begun_do_not_wait_for_each_other() -> None:
    """Each holds a part of the budget and needs more; one after the other comes to its end."""
    memory = RequestMemory(limits.MIB)
    data = framed(b"x" * limits.MIB)
    buffers = dict.fromkeys((InboundBuffer(memory, 1 << 24) for _ in range(4)), 0)  # how much each has read
    finished = 0
    while buffers:
        readable = [buffer for buffer in buffers if not buffer.wish_bytes]
        assert readable, "one of them gets on"
        for buffer in readable:
            space = buffer.space()
            if space is None:
                memory.wait(buffer.wish_bytes, buffer, buffer.granted)
                continue
            read = min(len(space), len(data) - buffers[buffer], 10_000)
            buffer.end += read
            buffers[buffer] += read
            if buffers[buffer] == len(data):
                buffer.release()
                del buffers[buffer]
                finished += 1
            assert memory.used_bytes <= memory.limit_bytes + len(data)
    assert finished == 4
    assert memory.used_bytes == 0 and not memory.waiting


def test_only_a_frame_that_comes_too_slowly_while_others_wait_holds_them_up() -> None:
    memory = RequestMemory(100 * limits.MIB)
    slow, fast, quiet = buffers = [InboundBuffer(memory, 1 << 24) for _ in range(3)]
    for buffer in buffers:
        feed(buffer, framed(b"x" * 10 * limits.MIB)[: 5 * limits.MIB])  # there is room for what follows
    now_s = 1000.0

    def held_up(seconds: int) -> list[InboundBuffer]:
        nonlocal now_s
        found: dict[InboundBuffer, None] = {}
        for _ in range(seconds):
            now_s += 1
            if memory.waiting:
                feed(slow, b"x" * 1000)
                feed(fast, b"x" * limits.RECEIVE_BYTES_PER_S_MIN)
            found.update((buffer, None) for buffer in buffers if buffer.holds_up(now_s))
        return list(found)

    assert held_up(2 * limits.STALLED_FRAME_S) == [], "nobody else needs it"
    memory.wait(100 * limits.MIB, OTHER, print)  # favoured
    memory.wait(100 * limits.MIB, Keeps(), print)
    assert held_up(limits.STALLED_FRAME_S) == []
    assert held_up(2) == [slow, quiet]


def test_a_frame_that_nobody_reads_does_not_come_too_slowly() -> None:
    """The answers before it have to leave first, or requests to be carried out."""
    memory = RequestMemory(100 * limits.MIB)
    buffer = InboundBuffer(memory, 1 << 24)
    feed(buffer, framed(b"x" * 10 * limits.MIB)[: 5 * limits.MIB])
    memory.wait(100 * limits.MIB, OTHER, print)  # favoured
    memory.wait(100 * limits.MIB, Keeps(), print)
    long_s = 2 * limits.STALLED_FRAME_S
    assert not any(buffer.holds_up(float(now_s), is_read=False) for now_s in range(long_s))
    found = [now_s for now_s in range(long_s, 2 * long_s) if buffer.holds_up(float(now_s))]
    assert found and found[0] >= long_s + limits.STALLED_FRAME_S, "the time counts from when it is read again"


def test_many_who_wait_ask_the_others_once() -> None:
    memory = RequestMemory(100)
    asked: list[int] = []

    class Holds(Keeps):
        def shrink(self) -> None:
            asked.append(1)

    memory.holders.update(dict.fromkeys(Holds() for _ in range(50)))
    assert memory.reserve(100, OTHER)
    for _ in range(100):
        memory.wait(10, Keeps(), print)
    assert len(memory.waiting) == 99, "one is favoured"
    assert len(asked) == 2 * 50, "for it, and for all others together"


def test_a_lone_request_larger_than_the_budget_is_let_through() -> None:
    memory = RequestMemory(100)
    assert memory.reserve(1000, OTHER)
    assert not memory.reserve(1, Keeps())


def test_while_others_wait_nothing_is_read_beyond_a_frame() -> None:
    memory = RequestMemory(1 << 30)
    buffer = InboundBuffer(memory, 1 << 24)
    body = b"x" * limits.MIB
    feed(buffer, framed(body)[:100])
    feed(buffer, framed(body)[100:-100])
    memory.wait(1 << 40, OTHER, print)  # favoured
    memory.wait(1 << 40, Keeps(), print)
    assert buffer.missing == 100
    assert len(buffer.space() or b"") == buffer.missing
    assert feed(buffer, framed(body)[-100:]) == [body]
    buffer.shrink()
    assert not buffer.holds_memory


def test_a_buffer_without_a_frame_is_taken_back_when_others_need_it() -> None:
    memory = RequestMemory(2 * limits.MIB)
    idle, busy, third = (InboundBuffer(memory, 1 << 24) for _ in range(3))
    data = framed(b"x" * limits.MIB)
    assert feed(idle, data) == [data[4:]]
    feed(busy, data[:-1])
    assert idle.holds_memory and busy.holds_memory
    feed(third, data[: limits.RECEIVE_BUFFER_BYTES])
    assert third.space() is None
    memory.wait(third.wish_bytes, third, third.granted)
    assert not memory.waiting, "at once"
    assert busy.holds_memory and not idle.holds_memory
    assert feed(third, data[limits.RECEIVE_BUFFER_BYTES :]) == [data[4:]]
    assert feed(busy, b"x") == [data[4:]]
    assert memory.used_bytes <= memory.limit_bytes


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
