"""TlsSocket: an accepted socket with TLS: its handshake first, then as a connection uses sockets.

OpenSSL handles all records that it has in one call, and some of them (new keys, another handshake) without an end if
the peer sends them fast enough. So received bytes are given to it in pieces of whole records, of some
`limits.TLS_RECEIVE_BYTES`, which bounds this time, however small the records are.

Between two operations an idle connection keeps nothing but OpenSSL's keys: bytes pass through the listener's `TlsPipe`.

- A read takes as many pieces as the buffer has room for, within `limits.REQUESTS_PER_TURN_S`. If it leaves bytes that
  the event loop does not see, because they were received already, `has_more` is True: the caller has to read again
  without being told.
- A send takes all bytes, or raises BlockingIOError and must be repeated with the same bytes before anything else is
  sent. Bytes are encrypted when the socket has taken those before, so a slow peer takes little memory.
- Answers of TLS itself wait for the next read or send if the socket does not take them. A peer that causes many of them
  and does not take them is disconnected.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from socket import socket
from typing import NoReturn, cast

from ottla.model import limits
from ottla.records.batch import Buffer
from ottla.server.net.tls_pipe import TlsPipe


class TlsSocket:
    __slots__ = (
        "_clock_s",
        "_encrypted_bytes",
        "_has_ended",
        "_left_over",
        "_pipe",
        "_raw",
        "_tls",
        "_unsent",
        "fileno",
        "getsockname",
        "has_answered",
        "has_more",
        "setblocking",
        "setsockopt",
    )

    def __init__(self, raw: socket, context: ssl.SSLContext, clock_s: Callable[[], float], pipe: TlsPipe) -> None:
        """Take over a non-blocking socket."""
        self._raw = raw
        self._clock_s = clock_s
        self._pipe = pipe
        self._tls = context.wrap_bio(pipe.incoming, pipe.outgoing, server_side=True)
        self._left_over = b""  # received bytes that OpenSSL does not have yet
        self._unsent: list[Buffer] = []  # encrypted bytes that the socket has not taken yet
        self._encrypted_bytes = 0  # how much of the data that is being sent is encrypted already
        self._has_ended = False  # whether the peer has said farewell, or broken the protocol
        self.has_answered = False  # whether the peer's hello was whole, and was answered
        self.has_more = True  # whether bytes may be left that were received already: after the handshake, say
        self.fileno = raw.fileno
        self.getsockname = raw.getsockname
        self.setblocking = raw.setblocking
        self.setsockopt = raw.setsockopt

    @property
    def certificate(self) -> bytes | None:
        """The certificate that the peer has shown (DER)."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def held_bytes(self) -> int:
        """The bytes that wait here: received ones for a read, encrypted ones for the peer."""
        return len(self._left_over) + sum(map(len, self._unsent))

    def step(self) -> str:
        """Take a step of the handshake: return "reader" or "writer", which it has to wait for, or "" if it is done.

        Raise OSError if it fails.
        """
        if not self._flush():
            return "writer"
        pipe = self._pipe
        pipe.begin()
        with suppress(BlockingIOError, InterruptedError):
            received = self._raw.recv(limits.TLS_RECEIVE_BYTES)
            if not received:
                raise ConnectionAbortedError("the client has left")
            pipe.incoming.write(received)
        awaited = ""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            awaited = "reader"
        except ssl.SSLError:
            self._take_encrypted()
            with suppress(OSError):
                self._flush()  # the reason, for the peer
            raise
        self._left_over += pipe.incoming.read()  # what the client has sent behind its handshake
        self._take_encrypted()
        self.has_answered |= bool(self._unsent)
        return awaited if self._flush() else "writer"

    def recv(self, size_bytes: int, flags: int, /) -> bytes:
        """Return encrypted bytes: for looking whether the peer has left, which they show as well."""
        return self._raw.recv(size_bytes, flags)

    def recv_into(self, buffer: memoryview, /) -> int:
        self._pipe.begin(self._left_over)
        self._left_over = b""
        filled = self._fill(buffer)
        self._left_over = self._pipe.rest()
        if not filled and not self._has_ended:
            raise BlockingIOError
        return filled

    def _fill(self, buffer: memoryview) -> int:
        until_s = self._clock_s() + limits.REQUESTS_PER_TURN_S
        pipe, room = self._pipe, len(buffer)
        filled = self._decrypt_into(buffer)  # what the last read had no room for
        while True:
            while filled < room and not self._has_ended and pipe.give():
                filled += self._decrypt_into(buffer[filled:])
                if self._clock_s() > until_s:
                    self.has_more = True
                    return filled
            self.has_more = self._has_ended or filled == room
            if self.has_more or pipe.is_drained or self._clock_s() > until_s:
                return filled
            try:
                self._has_ended = not pipe.receive(self._raw, room - filled)
            except (BlockingIOError, InterruptedError):
                return filled
            except OSError:
                if filled:
                    return filled  # the next read meets the end
                raise

    def _decrypt_into(self, buffer: memoryview) -> int:
        """Decrypt what OpenSSL has, as far as there is room; return the number of bytes."""
        filled, room = 0, len(buffer)
        tls, incoming = self._tls, self._pipe.incoming
        try:
            while filled < room and (incoming.pending or tls.pending()) and not self._has_ended:
                # The annotation of `read` says bytearray; OpenSSL writes into any buffer, and the number is returned.
                size = cast(int, tls.read(room - filled, buffer[filled:]))
                filled += size
                self._has_ended = not size
        except ssl.SSLWantReadError:
            pass  # those records had no data
        except ssl.SSLError:
            self._has_ended = True
        if self._pipe.outgoing.pending:
            self._take_encrypted()
            self._flush()
            self._has_ended |= sum(map(len, self._unsent)) > limits.TLS_UNSENT_BYTES_MAX
        return filled

    def send(self, data: Buffer, /) -> int:
        view = memoryview(data)
        pipe = self._pipe
        pipe.begin()
        while self._flush():
            begin = self._encrypted_bytes
            if begin >= len(view):
                self._encrypted_bytes = 0
                return len(view)
            self._encrypted_bytes += self._tls.write(view[begin : begin + pipe.encrypt_bytes])
            self._take_encrypted()
        raise BlockingIOError

    def _take_encrypted(self) -> None:
        encrypted = self._pipe.outgoing.read()
        if encrypted:
            self._unsent.append(encrypted)

    def _flush(self) -> bool:
        """Send what is encrypted; return whether the socket has taken all of it."""
        unsent = self._unsent
        while unsent:
            try:
                sent = self._raw.send(unsent[0])
            except (BlockingIOError, InterruptedError):
                return False
            if sent < len(unsent[0]):
                unsent[0] = memoryview(unsent[0])[sent:]
            else:
                del unsent[0]
        return True

    def sendmsg(self, buffers: Sequence[Buffer], /) -> NoReturn:
        raise NotImplementedError("bytes are joined before they are encrypted")

    def close(self) -> None:
        """Close the socket. The peer is told that this is the end of the stream, unless a record is half sent."""
        with suppress(OSError, ValueError):
            if self._flush():
                self._pipe.begin()
                with suppress(ssl.SSLWantReadError):
                    self._tls.unwrap()  # the peer's own farewell is not waited for
                self._take_encrypted()
                self._flush()
        self._raw.close()
