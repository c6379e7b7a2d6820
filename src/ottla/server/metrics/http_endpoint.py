"""HttpEndpoint: answers GET requests of a few paths on the node's own event loop, without delaying Kafka's clients.

It implements the part of HTTP/1.1 that scrapers and health checks need: one request per connection, without a body. The
number of connections, the size of a request, and the time from connecting to the end of the answer are bounded; an
answer is written only as fast as its client reads. A web framework would need more memory and time to import than the
broker itself.

With `tls`, a connection begins when its handshake has succeeded (`net/handshakes.py`). If there are too many, one of
them makes room for a new one (`Places`); health checks are answered whatever the others ask for.
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
from ottla.server.metrics.places import PlaceHolder, Places, PlaceStage
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
    delay_s: float = 0.0  # of a refusal; until then its connection makes room for others


class HttpRequest(NamedTuple):
    method: str
    target: str
    authorization: str
    host: str  # the address of the client
    principal: Principal  # whom its certificate names; ANONYMOUS without one


Resource: TypeAlias = Callable[[HttpRequest], Awaitable[HttpAnswer]]
# Returns the answer to a request that is refused; None if it may be served.
Guard: TypeAlias = Callable[[HttpRequest], Awaitable[HttpAnswer | None]]


class EndpointPage(NamedTuple):
    """What is told under one path. `is_health`: at once, to anybody, and in few bytes."""

    resource: Resource
    guard: Guard | None = None
    is_health: bool = False


def refusal(status: HTTPStatus) -> HttpAnswer:
    return HttpAnswer(status, (f"{status.value} {status.phrase}\n".encode(),))


class HttpEndpoint:
    def __init__(
        self,
        sock: ListeningSocket,
        runtime: Runtime,
        pages: Mapping[str, EndpointPage],
        tls: ListenerTls | None = None,
        on_login: Callable[[str, Principal | None, str], None] = lambda host, principal, reason: None,
    ) -> None:
        """`on_login` is told the address of a client, and the principal in its certificate or the reason for which it
        was refused.
        """
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self.places = Places()
        self._pages = pages
        self._sock = sock
        self._loop = loop = runtime.loop
        self._tls = tls
        self._on_login = on_login
        self._handshakes = Handshakes(runtime, lambda host, reason: on_login(host, None, reason))
        self._accepted: set[asyncio.Task[object]] = set()
        self.answering: set[asyncio.Task[None]] = set()
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
            elif self.places.make_room(address[0]):
                self._begin(sock, _Client(self, address[0]))
            else:
                sock.close()

    def _begin(self, sock: socket, client: _Client) -> None:
        task: asyncio.Task[object] = self._loop.create_task(self._loop.connect_accepted_socket(lambda: client, sock))
        self._accepted.add(task)
        task.add_done_callback(partial(self._connected, client))

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
        if not self.places.make_room(host):
            sock.close()
            return
        if principal is not ANONYMOUS:
            self._on_login(host, principal, "")
        TlsTransport(self._loop, sock, _Client(self, host, principal))

    def _connected(self, client: _Client, task: asyncio.Task[object]) -> None:
        self._accepted.discard(task)
        if task.cancelled():
            client.abort()
        elif (error := task.exception()) is not None:
            client.abort()
            log.info("a client of the metrics endpoint left: %s", error)

    async def answer(self, request: HttpRequest, client: PlaceHolder) -> HttpAnswer:
        if request.method not in _METHODS:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED)._replace(headers=f"Allow: {', '.join(_METHODS)}\r\n")
        page = self._pages.get(request.target.partition("?")[0])
        if page is None:
            return refusal(HTTPStatus.NOT_FOUND)
        try:
            return await self._answer(page, request, client)
        except Exception:
            log.exception("%s could not be answered", request.target)
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _answer(self, page: EndpointPage, request: HttpRequest, client: PlaceHolder) -> HttpAnswer:
        if page.is_health:
            client.stage = PlaceStage.HEALTH
            return await page.resource(request)
        refused = None if page.guard is None else await page.guard(request)
        if refused is not None:
            return refused
        if self.places.served >= limits.METRICS_SERVED_MAX:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE)._replace(headers="Retry-After: 1\r\n")
        client.stage = PlaceStage.SERVED
        return await page.resource(request)

    async def close(self) -> None:
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        self._handshakes.close()
        tasks = [*self._accepted, *self.answering]
        for client in self.places.all():
            client.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Client(asyncio.Protocol):
    """One connection: a request, then its answer, within `METRICS_REQUEST_S`."""

    def __init__(self, endpoint: HttpEndpoint, host: str, principal: Principal = ANONYMOUS) -> None:
        self.host = host
        self.stage = PlaceStage.SILENT
        self.task: asyncio.Task[None] | None = None
        self._is_over = False
        self._endpoint = endpoint
        self._principal = principal
        self._loop = asyncio.get_running_loop()
        self._head = b""
        self._transport: asyncio.Transport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._timer = self._loop.call_later(limits.METRICS_REQUEST_S, self.abort)
        endpoint.places.take(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        if self._is_over:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.task is not None:
            return  # one request is served per connection; what follows it is ignored
        self._head += data
        is_whole = _END_OF_HEAD in self._head
        if is_whole or len(self._head) > limits.METRICS_REQUEST_BYTES_MAX:
            self.stage = PlaceStage.ASKING
            self.task = self._loop.create_task(self._answer())
            self._endpoint.answering.add(self.task)
            self.task.add_done_callback(self._endpoint.answering.discard)

    def eof_received(self) -> bool:
        return self.task is not None  # a client may close its end and read the answer

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._endpoint.places.leave(self)
        if self.task is not None:
            self.task.cancel()

    def abort(self) -> None:
        self._is_over = True
        self._timer.cancel()
        self._endpoint.places.leave(self)
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
                request = HttpRequest(method, target, _authorization(fields), self.host, self._principal)
                answer = await self._endpoint.answer(request, self)
            else:
                method, answer = "", refusal(HTTPStatus.BAD_REQUEST)
        if answer.delay_s:
            self.stage = PlaceStage.REFUSED
            await asyncio.sleep(answer.delay_s)
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
