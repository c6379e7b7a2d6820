"""Answers read where they lie: whole whatever the pieces they come in, in memory that is used again."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.client.scripted import ScriptedBroker, metadata
from tests.client.test_connection import ask, connect, run

from ottla.client.in_place import InPlace
from ottla.model import limits
from ottla.wire.messages.topics.metadata import MetadataRequest

LENGTH_BYTES = 4


class Frames:
    """Keeps what it is given, as bytes of its own."""

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def take_frames(self, received: memoryview) -> tuple[int, int]:
        position = 0
        while len(received) - position >= LENGTH_BYTES:
            wanted = LENGTH_BYTES + int.from_bytes(received[position : position + LENGTH_BYTES], "big")
            if len(received) - position < wanted:
                return position, wanted
            self.found.append(bytes(received[position + LENGTH_BYTES : position + wanted]))
            position += wanted
        return position, LENGTH_BYTES

    def connection_lost(self, exc: Exception | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


@given(
    sizes=st.lists(st.integers(0, 3 * limits.RECEIVE_BUFFER_BYTES), min_size=1, max_size=8),
    pieces=st.lists(st.integers(1, 2 * limits.RECEIVE_BUFFER_BYTES), min_size=1, max_size=8),
)
def test_frames_may_be_cut_anywhere(sizes: list[int], pieces: list[int]) -> None:
    sent = [bytes([number]) * size for number, size in enumerate(sizes)]
    stream = b"".join(len(frame).to_bytes(LENGTH_BYTES, "big") + frame for frame in sent)
    frames = Frames()
    memory = InPlace(frames)
    turn = 0
    while stream:
        space = memory.get_buffer(-1)
        count = min(len(space), len(stream), pieces[turn % len(pieces)])
        assert count, "there is always room for more"
        space[:count] = stream[:count]
        memory.buffer_updated(count)
        stream, turn = stream[count:], turn + 1
    assert frames.found == sent


def test_what_a_giant_needed_is_given_back() -> None:
    frames = Frames()
    memory = InPlace(frames)
    for size in (limits.RECEIVE_KEPT_BYTES_MAX + 1, 10):
        memory.data_received(size.to_bytes(LENGTH_BYTES, "big") + bytes(size))
        assert len(memory.get_buffer(-1)) == limits.RECEIVE_BUFFER_BYTES
    assert [len(frame) for frame in frames.found] == [limits.RECEIVE_KEPT_BYTES_MAX + 1, 10]


def test_a_connection_that_reads_in_place() -> None:
    """Over a real socket, large and small answers in turn; one that makes no sense ends it."""

    async def test() -> None:
        async with ScriptedBroker() as broker:
            broker.answers[MetadataRequest] = metadata(broker, partitions=20, topics=tuple(map(str, range(500))))
            connection = await connect(broker)
            connection.read_in_place()
            found: list[Any] = []
            last = asyncio.get_running_loop().create_future()
            for number in range(4):
                then = found.append if number < 3 else last.set_result
                connection.call_now(ask(), then, version=connection.version_of(MetadataRequest))
            found.append(await last)
            assert [len(answer.topics) for answer in found] == [500] * 4
            assert (await connection.request(ask())).cluster_id == "scripted"
            failed: list[Any] = []
            broker.answers[MetadataRequest] = lambda request: None
            connection.call_now(ask(), failed.append, version=1)
            connection.take_frames(memoryview(b"\x7f\xff\xff\xff"))
            assert "is it a Kafka listener?" in str(failed[0])
            assert not connection.is_open

    run(test)
