"""HttpEndpoint: answers GET requests of a few paths on the node's own event loop, without delaying Kafka's clients.

It implements the part of HTTP/1.1 that scrapers and health checks need: one request per connection, without a body. The
number of connections, the size of a request, and the time from connecting to the end of the answer are bounded; an
answer is written only as fast as its client reads. A web framework would need more memory and time to import than the
broker itself.

With `tls`, a connection begins when its handshake has succeeded (`net/handshakes.py`). If there are too many, one that
has not sent its request makes room for a new one, the oldest first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from socket import socket
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from ottla.model import limits
from ottla.security.name_rules import NoMatchingRule
from ottla.security.principal import ANONYMOUS, Principal
from ottla.server.loop.runtime import Runtime
from ottla.server.metrics.tls_transport import TlsTransport
from ottla.server.net.handshakes import Handshakes
from ottla.server.net.tls_socket import TlsSocket
from ottla.server.ports.sockets import ListeningSocket

if TYPE_CHECKING:
    from ottla.server.security.listener_tls import ListenerTls

log = logging.getLogger(__name__)

_END_OF_HEAD = b"\r\n\r\n"
_METHODS = ("GET", "HEAD")
TEXT = "text/plain; charset=utf-8"


class HttpAnswer(NamedTuple):
    status: HTTPStatus
    chunks: Sequence[bytes]
    content_type: str = TEXT
    headers: str = ""  # further ones, each with its end of line


class HttpRequest(NamedTuple):
    method: str
    target: str
    authorization: str
    host: str  # the address of the client
    principal: Principal  # whom its certificate names; ANONYMOUS without one


Resource: TypeAlias = Callable[[HttpRequest], Awaitable[HttpAnswer]]


def refusal(status: HTTPStatus) -> HttpAnswer:
    return HttpAnswer(status, (f"{status.value} {status.phrase}\n".encode(),))


class HttpEndpoint:
    def __init__(
        self,
        sock: ListeningSocket,
        runtime: Runtime,
        resources: Mapping[str, Resource],
        tls: ListenerTls | None = None,
        on_login: Callable[[str, Principal | None, str], None] = lambda host, principal, reason: None,
    ) -> None:
        """`on_login` is told the address of a client, and the principal in its certificate or the reason for which it
        was refused.
        """
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self.resources = resources
        self.clients: dict[_Client, None] = {}  # the oldest first
        self._sock = sock
        self._loop = loop = runtime.loop
        self._tls = tls
        self._on_login = on_login
        self._handshakes = Handshakes(runtime, lambda host, reason: on_login(host, None, reason))
        self._accepted: set[asyncio.Task[object]] = set()
        loop.add_reader(sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(limits.ACCEPTS_PER_WAKEUP_MAX):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:  # no descriptors, perhaps; the loop comes back, as often as there is a client
                log.warning("accept failed: %s", error)
                return
            assert isinstance(sock, socket), "the endpoint needs a socket of the operating system"
            sock.setblocking(False)
            tls = self._tls
            if tls is not None:
                self._shake_hands(sock, address[0], tls)
            elif self._has_room():
                made = partial(_Client, self, address[0])
                task = self._loop.create_task(self._loop.connect_accepted_socket(made, sock))
                self._accepted.add(task)
                task.add_done_callback(self._connected)
            else:
                sock.close()

    def _has_room(self) -> bool:
        """Whether there may be another connection, perhaps in place of one that has not sent its request."""
        if len(self.clients) + len(self._accepted) < limits.METRICS_CONNECTIONS_MAX:
            return True
        idle = next((each for each in self.clients if each.task is None), None) if self._tls is not None else None
        if idle is not None:
            idle.abort()
        return idle is not None

    def _shake_hands(self, sock: socket, host: str, tls: ListenerTls) -> None:
        reason = self._handshakes.refuses(host)
        if reason is None:
            self._handshakes.begin(sock, host, tls.context, lambda secured: self._secured(secured, host, tls))
        else:
            log.info("refused a connection: %s", reason)
            sock.close()

    def _secured(self, sock: TlsSocket, host: str, tls: ListenerTls) -> None:
        """Let in a client whose handshake has succeeded."""
        try:
            principal = tls.principal_in(sock.certificate)
        except (ValueError, NoMatchingRule) as error:
            self._on_login(host, None, f"the certificate names no principal: {error}")
            sock.close()
            return
        if not self._has_room():
            sock.close()
            return
        if principal is not ANONYMOUS:
            self._on_login(host, principal, "")
        TlsTransport(self._loop, sock, _Client(self, host, principal))

    def _connected(self, task: asyncio.Task[object]) -> None:
        self._accepted.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("a client of the metrics endpoint left: %s", error)

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        if request.method not in _METHODS:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED)._replace(headers=f"Allow: {', '.join(_METHODS)}\r\n")
        resource = self.resources.get(request.target.partition("?")[0])
        if resource is None:
            return refusal(HTTPStatus.NOT_FOUND)
        try:
            return await resource(request)
        except Exception:
            log.exception("%s could not be answered", request.target)
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR)

    async def close(self) -> None:
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        self._handshakes.close()
        for client in tuple(self.clients):
            client.abort()
        tasks = [*self._accepted, *(each.task for each in self.clients if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Client(asyncio.Protocol):
    """One connection: a request, then its answer, within `METRICS_REQUEST_S`."""

    def __init__(self, endpoint: HttpEndpoint, host: str, principal: Principal = ANONYMOUS) -> None:
        self.task: asyncio.Task[None] | None = None
        self._endpoint = endpoint
        self._host = host
        self._principal = principal
        self._loop = asyncio.get_running_loop()
        self._head = b""
        self._transport: asyncio.Transport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._timer = self._loop.call_later(limits.METRICS_REQUEST_S, self.abort)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        self._endpoint.clients[self] = None

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
        self._endpoint.clients.pop(self, None)
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
            line, *fields = self._head.decode("ascii", "replace").split("\r\n")
            words = line.split(" ")
            if len(words) == 3 and words[2].startswith("HTTP/1."):
                method, target, _ = words
                request = HttpRequest(method, target, _authorization(fields), self._host, self._principal)
                answer = await self._endpoint.answer(request)
            else:
                method, answer = "", refusal(HTTPStatus.BAD_REQUEST)
        self._transport.write(_head_of(answer))
        for chunk in () if method == "HEAD" else answer.chunks:
            await self._may_write.wait()
            self._transport.write(chunk)
        self._transport.close()  # after what is written is sent


def _authorization(fields: Sequence[str]) -> str:
    """Return the value of the header; empty without one."""
    for field in fields:
        name, _, value = field.partition(":")
        if name.lower() == "authorization":
            return value.strip()
    return ""


def _head_of(answer: HttpAnswer) -> bytes:
    return (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {sum(map(len, answer.chunks))}\r\n"
        f"{answer.headers}"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    ).encode("ascii")
