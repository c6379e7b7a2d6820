"""TlsPipe: what encrypted bytes pass through on their way to and from OpenSSL. Connections share it.

OpenSSL's memory BIOs keep the memory of the largest write they have seen, and an SSL object keeps its BIOs for life. So
BIOs of its own would cost each connection some 100 KiB after its first large answer, also while it is idle. They are
shared instead: an operation of a TlsSocket begins with an empty pipe and empties it before it ends, so the bytes of one
client never meet those of another. That holds because one thread, that of the event loop, does one operation after the
other. A handshake whose steps are taken by workers needs a pipe of its own (`own`).
"""

from __future__ import annotations

import ssl
from socket import socket

from ottla.model import limits

_HEADER_BYTES = 5  # of a record: its type, its version, and how many bytes follow


class TlsPipe:
    __slots__ = ("_begin", "_end", "_received", "encrypt_bytes", "incoming", "is_drained", "is_shared", "outgoing")

    def __init__(self, shared: TlsPipe | None = None) -> None:
        """`shared` is the pipe of the other connections, for a pipe that one connection has for itself (see `own`)."""
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._begin = self._end = 0  # of the bytes that OpenSSL does not have yet
        self.is_drained = False  # whether the socket had no more when bytes were received last
        self.is_shared = shared is None
        if shared is None:
            self._received = memoryview(bytearray(limits.TLS_RECEIVE_BUFFER_BYTES))
            self.encrypt_bytes = limits.TLS_ENCRYPT_BYTES  # that are encrypted in one go
        else:
            self._received = shared._received  # which the event loop alone uses
            self.encrypt_bytes = limits.TLS_RECORD_DATA_BYTES

    def own(self) -> TlsPipe:
        """Return a pipe for one connection: another thread may use its BIOs, which stay small."""
        return TlsPipe(self)

    def begin(self, received: bytes = b"") -> None:
        """Begin an operation, with bytes that were received before.

        What is left of an operation that failed in the middle, for lack of memory, say, is dropped.
        """
        if self.incoming.pending:
            self.incoming.read()
        if self.outgoing.pending:
            self.outgoing.read()
        self._begin, self._end = 0, len(received)
        self._received[: self._end] = received
        self.is_drained = False

    def give(self) -> bool:
        """Give OpenSSL the next whole records, up to some `limits.TLS_RECEIVE_BYTES`; False if there is none."""
        begin, end, received = self._begin, self._end, self._received
        at, until = begin, min(begin + limits.TLS_RECEIVE_BYTES, end - _HEADER_BYTES + 1)
        while at < until:
            size_bytes = received[at + 3] << 8 | received[at + 4]
            after = at + _HEADER_BYTES + size_bytes
            if size_bytes > limits.TLS_RECORD_BYTES_MAX:
                after = end  # no record, which OpenSSL notices
            elif after > end:
                break
            at = after
        if at == begin:
            return False
        self.incoming.write(received[begin:at])
        self._begin = at
        return True

    def receive(self, raw: socket, wanted_bytes: int) -> int:
        """Receive more, when there is no whole record left; return the number of bytes, 0 at the end of the stream."""
        received, left_bytes = self._received, self._end - self._begin
        received[:left_bytes] = received[self._begin : self._end]
        self._begin, self._end = 0, left_bytes
        asked = min(len(received) - left_bytes, max(wanted_bytes, limits.TLS_RECEIVE_BYTES))
        size_bytes = raw.recv_into(received[left_bytes : left_bytes + asked])
        self._end += size_bytes
        self.is_drained = size_bytes < asked
        return size_bytes

    def rest(self) -> bytes:
        """Return what was received and not read, for the next operation of the same connection."""
        given = self.incoming.read() if self.incoming.pending else b""
        return given + bytes(self._received[self._begin : self._end])
