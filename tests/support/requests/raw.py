"""A bare connection: Ottla's codecs over a blocking socket, so that a test decides every byte that is sent."""

import select
import socket
import ssl
import struct
from typing import TypeVar

from tests.support.waiting import WAIT_S

from ottla.wire.api import response_class
from ottla.wire.compile import decoder
from ottla.wire.frame import request_frame
from ottla.wire.header import ResponseHeader, response_header_version
from ottla.wire.message import Request, Response

R = TypeVar("R", bound=Response)


class Closed(Exception):
    """The other side closed the connection instead of answering."""


class RawConnection:
    def __init__(
        self,
        bootstrap: str,
        *,
        timeout_s: float = WAIT_S,
        source: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`source` is the address of this end, by which ACLs can tell clients apart; `tls` secures the connection."""
        host, port = bootstrap.rsplit(":", 1)
        own = None if source is None else (source, 0)
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s, source_address=own)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self._next_id = 1

    def __del__(self) -> None:
        """Close a connection that a failed test left open: otherwise the warning would appear in a later, unrelated
        test.
        """
        if hasattr(self, "_socket"):
            self._socket.close()

    def call(self, request: Request, version: int) -> Response:
        """The response to a request, decoded by Ottla's classes."""
        correlation_id = self._next_id
        self._next_id += 1
        self.send(request_frame(request, version, correlation_id, "raw"))
        return self.decode(type(request).key, version, self.receive(), correlation_id)

    def decode(self, key: int, version: int, frame: bytes, correlation_id: int) -> Response:
        view = memoryview(frame)
        header, at = decoder(ResponseHeader, response_header_version(key, version))(view, 0)
        assert header.correlation_id == correlation_id
        message, end = decoder(response_class(key), version)(view, at)
        assert end == len(frame), f"{len(frame) - end} bytes left over in the answer"
        return message

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def has_answer(self) -> bool:
        """Whether data has arrived that was not received yet."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def receive(self) -> bytes:
        """Receive one frame, without its length."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def receive_some(self) -> bytes:
        """Receive what comes next, be it only a part of a frame."""
        return self._exactly(1)

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            try:
                part = self._socket.recv(min(count, 1 << 20))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Closed
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
