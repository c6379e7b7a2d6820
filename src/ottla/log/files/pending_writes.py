"""PendingPieces: what was appended to a file and is not in it yet, because the disk makes its writers wait.

The pieces lie behind each other, from where the file ends to where everybody takes it to end. A worker writes them in
order, the loop adds more and cuts some off; whoever owns the file sees to it that they do not do so at the same time.
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
        """A copy of it: what a client sent is in its receive buffer, which is used again."""
        self.append(Piece(position, bytes(data)))

    def wrote(self, piece: Piece) -> None:
        """The piece is in the file. If it was cut off meanwhile, it is not in this list any more."""
        if self and self[0] is piece:
            del self[0]

    def cut(self, size_bytes: int) -> None:
        """The file ends there."""
        while self and self[-1].position >= size_bytes:
            self.pop()
        if self and self[-1].end > size_bytes:
            last = self[-1]
            last.data = last.data[: size_bytes - last.position]

    def read(self, position: int, end: int) -> bytes:
        """What of that range waits."""
        return b"".join(
            piece.data[max(position - piece.position, 0) : end - piece.position]
            for piece in self
            if piece.position < end and piece.end > position
        )
