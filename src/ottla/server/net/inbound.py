"""InboundBuffer: the receive buffer of one connection, in which requests are parsed without copying.

Memory follows the bytes that really arrived: whatever length a frame announces, the buffer doubles as its bytes arrive,
and the growth is reserved then. Returned views stay valid until the next `space` call; the bytearray is replaced, never
resized. While the buffer is `pinned`, `space` must not be called, and the buffer is not given back.
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
        self.pinned = False  # whether a request in the buffer is still being carried out
        self.wish_bytes = 0  # the bytes that `space` was refused and waits for
        self._seen_s, self._seen_bytes = inf, 0  # when the frame last arrived fast enough, and its bytes then

    def _use(self, buffer: bytearray) -> None:
        self.buffer = buffer
        self.view = memoryview(buffer)
        self.capacity = len(buffer)

    def space(self) -> memoryview | None:
        """Return where the next bytes go; None if the shared budget does not have `wish_bytes` for them now."""
        if self.start == self.end:
            self.start = self.end = 0
        held = self.end - self.start
        # While other connections wait for memory, do not read beyond this frame, so that the buffer is empty after it
        # and can be given back.
        exactly = self.missing and self._memory.waiting
        wanted = held + (self.missing if exactly else max(self.missing, limits.RECEIVE_READ_BYTES_MIN))
        if self.start + wanted > self.capacity and not self._make_room(held, self._target(held, wanted)):
            return None
        return self.view[self.end : self.end + self.missing] if exactly else self.view[self.end :]

    def _make_room(self, held: int, target: int) -> bool:
        """Move the held bytes to the front of a buffer of `target` bytes; False if there is no memory for it."""
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
        """Record that `size_bytes` of the budget are reserved for this buffer."""
        self._reserved += size_bytes
        self.wish_bytes = 0
        self._memory.holders[self] = None

    def _target(self, held: int, wanted: int) -> int:
        """Return the new capacity: a full buffer doubles and a little more, up to what the frame needs."""
        if wanted <= self.capacity or self.capacity - held >= limits.RECEIVE_READ_BYTES_MIN:
            return self.capacity
        return max(min(wanted, 2 * self.capacity + limits.RECEIVE_BUFFER_BYTES), limits.RECEIVE_BUFFER_BYTES)

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its length prefix, or None; then `missing` is the number of bytes that it
        lacks.
        """
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
        """Put back the frame that was just returned, to be handled later."""
        self.start -= 4 + len(frame)

    @property
    def has_room(self) -> bool:
        """Whether more bytes can be read behind the held ones without more memory."""
        return self.capacity - (self.end - self.start) >= limits.RECEIVE_READ_BYTES_MIN

    @property
    def holds_memory(self) -> bool:
        return self._reserved > 0

    def holds_up(self, now_s: float, *, is_read: bool = True) -> bool:
        """Return whether other connections wait for memory while this one's frame arrives too slowly; called about once
        a second.

        A connection that is not being read at the moment is not slow.
        """
        held = self.end - self.start
        came_bytes = held - self._seen_bytes
        if (
            not (self._reserved and self._memory.waiting)
            or not is_read
            or self.pinned
            or self.wish_bytes
            or came_bytes < 0  # another frame by now
            or came_bytes >= limits.RECEIVE_BYTES_PER_S_MIN * (now_s - self._seen_s)
        ):
            self._seen_s, self._seen_bytes = now_s, held
            return False
        return now_s - self._seen_s > limits.STALLED_FRAME_S

    def shrink(self) -> None:
        """Give the buffer back if it holds no bytes; the next read gets a small one again."""
        if self.capacity and self.start == self.end and not self.pinned:
            self._use(bytearray())
            self.start = self.end = 0
            self.release()

    def move_to(self, memory: RequestMemory) -> None:
        """Count the memory of this buffer in another budget from now on."""
        reserved = self._reserved
        self.release()
        self._memory, self._reserved = memory, reserved
        memory.take_over(reserved, self)

    def drop(self) -> None:
        """Give the buffer back, because nothing more will be read."""
        self._use(bytearray())
        self.start = self.end = 0
        self.release()

    def release(self) -> None:
        reserved, self._reserved = self._reserved, 0
        if reserved:
            del self._memory.holders[self]
            self._memory.release(reserved, self)
