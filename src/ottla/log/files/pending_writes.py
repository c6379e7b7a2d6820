"""PendingPieces: data that was appended to a file but is not written yet, because the disk blocks its writers.

The pieces lie one after the other, from the end of the file to the end that readers see. A worker writes them in order,
the loop adds and truncates pieces; the owner of the file makes sure that the two do not do so at the same time.
"""

from __future__ import annotations

from ottla.log.files.disk import Buffer


class Piece:
    __slots__ = ("data", "position")

    def __init__(self, position: int, data: bytes) -> None:
        self.position = position
        self.data = data

    @property
    def end(self) -> int:
        return self.position + len(self.data)


class PendingPieces(list[Piece]):
    __slots__ = ()

    def add(self, position: int, data: Buffer) -> None:
        """Add a copy of the data: a client's batch lies in its receive buffer, which is reused."""
        self.append(Piece(position, bytes(data)))

    def wrote(self, piece: Piece) -> None:
        """Remove a piece that is in the file. If it was truncated meanwhile, it is not in this list any more."""
        if self and self[0] is piece:
            del self[0]

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
