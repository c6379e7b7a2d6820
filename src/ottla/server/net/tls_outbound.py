"""TlsOutbound: the queue of a connection over TLS, whose bytes pass through the process.

OpenSSL takes all bytes that it is given, or it takes none and must be given the same bytes again. So bytes that the
socket has not taken are kept as they are (`_offered`); nothing is joined with them. A file range is read in steps and,
if the socket does not take a step, read again later: a slow reader takes no memory.
"""

from __future__ import annotations

from ottla.log.files.disk import Cold, FileSlice
from ottla.model import limits
from ottla.server.net.outbound import Outbound, too_short
from ottla.server.ports.sockets import Socket


class TlsOutbound(Outbound):
    __slots__ = ("_offered",)

    def __init__(self) -> None:
        super().__init__()
        self._offered: bytes | None = None  # given to the socket, which has not taken them yet

    def clear(self) -> None:
        super().clear()
        self._offered = None

    def flush(self, sock: Socket, warmed: bool = False) -> bool:
        left_bytes = limits.SEND_PER_TURN_BYTES
        try:
            while left_bytes > 0 and (self._offered is not None or self.queue):
                head = None if self._offered is not None else self.queue[0]
                if isinstance(head, FileSlice) and head.size_bytes > limits.INLINE_SLICE_BYTES_MAX:
                    left_bytes -= self._send_file(sock, head, warmed)
                else:
                    left_bytes -= self._send_bytes(sock, warmed)
                warmed = False
        except (BlockingIOError, InterruptedError):
            return False
        return self._offered is None and not self.queue

    def _send_bytes(self, sock: Socket, warmed: bool) -> int:
        """Send the bytes at the head of the queue, joined: each send is a record and a system call."""
        if self._offered is None:
            self._offered = b"".join(self._run(warmed))
            self._sent(len(self._offered))
            self.held_bytes += len(self._offered)  # they are still in memory
        sock.send(self._offered)
        size_bytes = len(self._offered)
        self.held_bytes -= size_bytes
        self._offered = None
        return size_bytes

    def _send_file(self, sock: Socket, part: FileSlice, warmed: bool) -> int:
        step_bytes = min(part.size_bytes, limits.TLS_SEND_STEP_BYTES)
        if not (warmed or part.file.is_warm(part.position, step_bytes)):
            raise Cold(part.file, part.position, step_bytes)
        data = part.file.read(part.position, step_bytes)
        if len(data) < step_bytes:
            raise too_short(part)
        sock.send(data)
        self._advance(part, step_bytes)
        return step_bytes
