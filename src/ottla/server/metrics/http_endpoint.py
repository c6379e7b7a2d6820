"""HttpEndpoint: answers GET requests of a few paths on the node's own event loop, without delaying Kafka's clients.

It implements the part of HTTP/1.1 that scrapers and health checks need: one request per connection, without a body. The
number of connections, the size of a request, and the time from connecting to the end of the answer are bounded; an
answer is written only as fast as its client reads. A web framework would need more memory and time to import than the
broker itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from socket import socket
from typing import NamedTuple, TypeAlias, cast

from ottla.model import limits
from ottla.server.ports.sockets import ListeningSocket

log = logging.getLogger(__name__)

_END_OF_HEAD = b"\r\n\r\n"
_METHODS = ("GET", "HEAD")
TEXT = "text/plain; charset=utf-8"


class HttpAnswer(NamedTuple):
    status: HTTPStatus
    chunks: Sequence[bytes]
    content_type: str = TEXT


Resource: TypeAlias = Callable[[], Awaitable[HttpAnswer]]


def refusal(status: HTTPStatus) -> HttpAnswer:
    return HttpAnswer(status, (f"{status.value} {status.phrase}\n".encode(),))


class HttpEndpoint:
    def __init__(
        self, sock: ListeningSocket, loop: asyncio.AbstractEventLoop, resources: Mapping[str, Resource]
    ) -> None:
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self.resources = resources
        self.clients: set[_Client] = set()
        self._sock = sock
        self._loop = loop
        self._accepted: set[asyncio.Task[object]] = set()
        loop.add_reader(sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(limits.ACCEPTS_PER_WAKEUP_MAX):
            try:
                sock, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:  # no descriptors, perhaps; the loop comes back, as often as there is a client
                log.warning("accept failed: %s", error)
                return
            assert isinstance(sock, socket), "the endpoint needs a socket of the operating system"
            if len(self.clients) + len(self._accepted) >= limits.METRICS_CONNECTIONS_MAX:
                sock.close()
                continue
            sock.setblocking(False)
            task = self._loop.create_task(self._loop.connect_accepted_socket(lambda: _Client(self), sock))
            self._accepted.add(task)
            task.add_done_callback(self._connected)

    def _connected(self, task: asyncio.Task[object]) -> None:
        self._accepted.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("a client of the metrics endpoint left: %s", error)

    async def answer(self, method: str, target: str) -> HttpAnswer:
        if method not in _METHODS:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        resource = self.resources.get(target.partition("?")[0])
        if resource is None:
            return refusal(HTTPStatus.NOT_FOUND)
        try:
            return await resource()
        except Exception:
            log.exception("%s could not be answered", target)
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR)

    async def close(self) -> None:
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        for client in tuple(self.clients):
            client.abort()
        tasks = [*self._accepted, *(each.task for each in self.clients if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Client(asyncio.Protocol):
    """One connection: a request, then its answer, within `METRICS_REQUEST_S`."""

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self.task: asyncio.Task[None] | None = None
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._head = b""
        self._transport: asyncio.Transport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._timer = self._loop.call_later(limits.METRICS_REQUEST_S, self.abort)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        self._endpoint.clients.add(self)

    def data_received(self, data: bytes) -> None:
        if self.task is not None:
            return  # one request is served per connection; what follows it is ignored
        self._head += data
        is_whole = _END_OF_HEAD in self._head
        if is_whole or len(self._head) > limits.METRICS_REQUEST_BYTES_MAX:
            self.task = self._loop.create_task(self._answer())

    def eof_received(self) -> bool:
        return self.task is not None  # a client may close its end and read the answer

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._endpoint.clients.discard(self)
        if self.task is not None:
            self.task.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def _answer(self) -> None:
        assert self._transport is not None, "it has sent something"
        if len(self._head) > limits.METRICS_REQUEST_BYTES_MAX:
            method, answer = "", refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        else:
            words = self._head.partition(b"\r\n")[0].decode("ascii", "replace").split(" ")
            if len(words) == 3 and words[2].startswith("HTTP/1."):
                method = words[0]
                answer = await self._endpoint.answer(method, words[1])
            else:
                method, answer = "", refusal(HTTPStatus.BAD_REQUEST)
        self._transport.write(_head_of(answer))
        for chunk in () if method == "HEAD" else answer.chunks:
            await self._may_write.wait()
            self._transport.write(chunk)
        self._transport.close()  # after what is written is sent


def _head_of(answer: HttpAnswer) -> bytes:
    allow = f"Allow: {', '.join(_METHODS)}\r\n" if answer.status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    return (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {sum(map(len, answer.chunks))}\r\n"
        f"{allow}"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    ).encode("ascii")
