"""InboundBuffer: the receive buffer of one connection, in which requests are parsed where they lie.

Memory follows the bytes that really arrived: whatever length a frame announces, the buffer doubles as its bytes come,
and what it grows by is reserved then. Views handed out stay valid until the next `space` call; the bytearray is
replaced, never resized. While it is `pinned` nobody asks for space, and it is not given back.
"""

from __future__ import annotations

from math import inf
from struct import Struct

from ottla.model import limits
from ottla.server.loop.request_memory import RequestMemory

_LENGTH = Struct(">i").unpack_from


class FrameTooLarge(Exception):
    """The announced frame length is negative or above socket.request.max.bytes."""


class InboundBuffer:
    __slots__ = (
        "_memory",
        "_reserved",
        "_seen_bytes",
        "_seen_s",
        "buffer",
        "capacity",
        "end",
        "max_frame_bytes",
        "missing",
        "pinned",
        "start",
        "view",
        "wish_bytes",
    )

    def __init__(self, memory: RequestMemory, max_frame_bytes: int) -> None:
        self._memory = memory
        self._reserved = 0
        self.max_frame_bytes = max_frame_bytes
        self._use(bytearray(limits.RECEIVE_BUFFER_BYTES))
        self.start = self.end = 0
        self.missing = 0  # bytes the frame at `start` still lacks
        self.pinned = False  # a request that was handed out is still being carried out
        self.wish_bytes = 0  # what `space` was refused and waits for
        self._seen_s, self._seen_bytes = inf, 0  # when its frame was last seen to come fast enough, and how much of it

    def _use(self, buffer: bytearray) -> None:
        self.buffer = buffer
        self.view = memoryview(buffer)
        self.capacity = len(buffer)

    def space(self) -> memoryview | None:
        """Where the next bytes go; None when the shared budget does not have `wish_bytes` for them now."""
        if self.start == self.end:
            self.start = self.end = 0
        held = self.end - self.start
        # While others wait not beyond this frame, so that the buffer is empty behind it and can be given to them.
        exactly = self.missing and self._memory.waiting
        wanted = held + (self.missing if exactly else max(self.missing, limits.RECEIVE_READ_BYTES_MIN))
        if self.start + wanted > self.capacity and not self._make_room(held, self._target(held, wanted)):
            return None
        return self.view[self.end : self.end + self.missing] if exactly else self.view[self.end :]

    def _make_room(self, held: int, target: int) -> bool:
        """Moves what is held to the front of a buffer of `target` bytes; False if there is no memory for it."""
        if target > self.capacity:
            grown = target - limits.RECEIVE_BUFFER_BYTES - self._reserved
            if grown > 0:
                if not self._memory.reserve(grown, self):
                    self.wish_bytes = grown
                    return False
                self.granted(grown)
            fresh = bytearray(target)
            fresh[:held] = self.view[self.start : self.end]
            self._use(fresh)
        elif self.start:
            self.view[:held] = self.view[self.start : self.end]
        self.start, self.end = 0, held
        return True

    def granted(self, size_bytes: int) -> None:
        """So much of the budget is ours."""
        self._reserved += size_bytes
        self.wish_bytes = 0
        self._memory.holders[self] = None

    def _target(self, held: int, wanted: int) -> int:
        """The capacity to have now: a full buffer doubles and a little more, up to what the frame needs."""
        if wanted <= self.capacity or self.capacity - held >= limits.RECEIVE_READ_BYTES_MIN:
            return self.capacity
        return max(min(wanted, 2 * self.capacity + limits.RECEIVE_BUFFER_BYTES), limits.RECEIVE_BUFFER_BYTES)

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its length prefix, or None; then `missing` tells how much is awaited."""
        start = self.start
        held = self.end - start
        if held < 4:
            self.missing = 4 - held
            return None
        size = _LENGTH(self.buffer, start)[0]
        if not 0 <= size <= self.max_frame_bytes:
            raise FrameTooLarge(f"a frame of {size} bytes (socket.request.max.bytes is {self.max_frame_bytes})")
        missing = size + 4 - held
        if missing > 0:
            self.missing = missing
            return None
        self.missing = 0
        self.start = start + 4 + size
        return self.view[start + 4 : self.start]

    def put_back(self, frame: memoryview) -> None:
        """The frame that was just taken is not handled now."""
        self.start -= 4 + len(frame)

    @property
    def has_room(self) -> bool:
        """Whether more can be read behind what is held, without more memory."""
        return self.capacity - (self.end - self.start) >= limits.RECEIVE_READ_BYTES_MIN

    @property
    def holds_memory(self) -> bool:
        return self._reserved > 0

    def holds_up(self, now_s: float, *, is_read: bool = True) -> bool:
        """Asked about once a second: whether others wait for memory that a frame holds which comes too slowly.

        While the connection is not read, nothing can come.
        """
        held = self.end - self.start
        came_bytes = held - self._seen_bytes
        if (
            not (self._reserved and self._memory.waiting)
            or not is_read
            or self.pinned
            or self.wish_bytes
            or came_bytes < 0  # it is another frame
            or came_bytes >= limits.RECEIVE_BYTES_PER_S_MIN * (now_s - self._seen_s)
        ):
            self._seen_s, self._seen_bytes = now_s, held
            return False
        return now_s - self._seen_s > limits.STALLED_FRAME_S

    def shrink(self) -> None:
        """Gives the buffer back when nothing is held; the next bytes get a small one again."""
        if self.capacity and self.start == self.end and not self.pinned:
            self._use(bytearray())
            self.start = self.end = 0
            self.release()

    def release(self) -> None:
        reserved, self._reserved = self._reserved, 0
        if reserved:
            del self._memory.holders[self]
            self._memory.release(reserved, self)
