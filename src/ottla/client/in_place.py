"""InPlace: receives the answers of one connection into memory of its own, where they are read without a copy.

For a caller that needs an answer only until its callback returns: no byte is copied, and no memory is allocated per
answer. All other answers own their bytes (`connection`).

Rules: the memory grows with the frame that is awaited and is replaced, never resized; memory for a very large frame is
released after it.
"""

import asyncio
from typing import Protocol

from ottla.model import limits

_LENGTH_SIZE_BYTES = 4


class FrameReader(Protocol):
    """The methods of a connection that `InPlace` calls."""

    def take_frames(self, received: memoryview) -> tuple[int, int]:
        """Read the whole frames at the beginning; return their size and the size of the next one, in bytes."""

    def connection_lost(self, exc: Exception | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class InPlace(asyncio.BufferedProtocol):
    def __init__(self, reader: FrameReader) -> None:
        self._reader = reader
        self._start = self._end = 0
        self._wanted = _LENGTH_SIZE_BYTES  # size of the frame at `start`, as far as it is known
        self._use(bytearray(limits.RECEIVE_BUFFER_BYTES))
        self.connection_lost = reader.connection_lost  # type: ignore[method-assign]
        self.pause_writing = reader.pause_writing  # type: ignore[method-assign]
        self.resume_writing = reader.resume_writing  # type: ignore[method-assign]

    def _use(self, memory: bytearray) -> None:
        self._memory = memoryview(memory)

    def get_buffer(self, sizehint: int) -> memoryview:
        start, end = self._start, self._end
        if start and (start == end or start + max(self._wanted, limits.RECEIVE_READ_BYTES_MIN) > len(self._memory)):
            held = end - start
            self._memory[:held] = self._memory[start:end]
            self._start, self._end = 0, held
        if self._wanted > len(self._memory):
            larger = bytearray(self._wanted)
            larger[: self._end] = self._memory[: self._end]
            self._use(larger)
        return self._memory[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        if self._end - self._start < self._wanted:
            return
        taken, self._wanted = self._reader.take_frames(self._memory[self._start : self._end])
        self._start += taken
        if self._start == self._end and len(self._memory) > limits.RECEIVE_KEPT_BYTES_MAX:
            self._use(bytearray(limits.RECEIVE_BUFFER_BYTES))
            self._start = self._end = 0

    def data_received(self, data: bytes) -> None:
        """Called by transports without buffered protocols (the simulator's)."""
        rest = memoryview(data)
        while rest:
            space = self.get_buffer(-1)
            count = min(len(space), len(rest))
            space[:count] = rest[:count]
            rest = rest[count:]
            self.buffer_updated(count)
