"""PendingPieces: data that was appended to a file but is not written yet, because the disk blocks its writers.

The pieces lie one after the other, from the end of the file to the end that readers see. A worker writes them in order,
the loop adds and truncates pieces; the owner of the file makes sure that the two do not do so at the same time.

Pieces are copies: a client's batch lies in its receive buffer, which is reused. Those of large batches are in buffers
of one size that are used again: to touch fresh memory takes the event loop many times as long as the copy itself.
"""

from __future__ import annotations

from ottla.log.files.disk import Buffer
from ottla.model.limits import WRITE_BUFFER_BYTES, WRITE_BUFFERS_KEPT_MAX

# Buffers for the next pieces: the loop takes them, and workers give them back.
_kept: list[bytearray] = []


def _buffer() -> bytearray:
    try:
        return _kept.pop()
    except IndexError:
        return bytearray(WRITE_BUFFER_BYTES)


class Piece:
    __slots__ = ("_buffer", "data", "position")

    def __init__(self, position: int, data: Buffer, buffer: bytearray | None = None) -> None:
        """`buffer` is what `data` is a view of, if it may be used again after the write."""
        self.position = position
        self.data = data
        self._buffer = buffer

    @property
    def end(self) -> int:
        return self.position + len(self.data)

    def leave(self) -> None:
        """Give the buffer back, because nobody uses this piece any more."""
        buffer, self._buffer = self._buffer, None
        if buffer is not None and len(_kept) < WRITE_BUFFERS_KEPT_MAX:
            self.data = b""
            _kept.append(buffer)


class PendingPieces(list[Piece]):
    __slots__ = ()

    def add(self, position: int, data: Buffer) -> None:
        """Add a copy of the data: all of it, or nothing if there is no memory for it."""
        size_bytes = len(data)
        if size_bytes < WRITE_BUFFER_BYTES // 2:
            self.append(Piece(position, bytes(data)))
            return
        view = memoryview(data)
        pieces: list[Piece] = []
        for at in range(0, size_bytes, WRITE_BUFFER_BYTES):
            part = view[at : at + WRITE_BUFFER_BYTES]
            buffer = _buffer()
            copy = memoryview(buffer)[: len(part)]
            copy[:] = part
            pieces.append(Piece(position + at, copy, buffer))
        self += pieces

    def wrote(self, piece: Piece) -> None:
        """Remove a piece that is in the file. If it was truncated meanwhile, it is not in this list any more."""
        if self and self[0] is piece:
            del self[0]
        piece.leave()

    def cut(self, size_bytes: int) -> None:
        """Truncate the pieces to a file size."""
        while self and self[-1].position >= size_bytes:
            self.pop()
        if self and self[-1].end > size_bytes:
            last = self[-1]
            last.data = last.data[: size_bytes - last.position]

    def read(self, position: int, end: int) -> bytes:
        """Return the part of a range that is pending."""
        return b"".join(
            piece.data[max(position - piece.position, 0) : end - piece.position]
            for piece in self
            if piece.position < end and piece.end > position
        )
