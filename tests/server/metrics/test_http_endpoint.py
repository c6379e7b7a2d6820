"""The endpoint against slow, hostile and many clients: it answers the others and forgets these."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest
from tests.server.nodes import until

from ottla.model import limits
from ottla.server.loop.runtime import Runtime
from ottla.server.metrics.address_turns import AddressTurns
from ottla.server.metrics.http_endpoint import EndpointPage, HttpAnswer, HttpEndpoint, HttpRequest, refusal
from ottla.server.metrics.places import Places, PlaceStage
from ottla.server.ports.sockets import OsNet
from ottla.server.process import loop_factory

LARGE = [bytes([65 + number % 26]) * 1_000_000 for number in range(20)]


async def hello(_: HttpRequest) -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, (b"hello ", b"there"))


async def large(_: HttpRequest) -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, LARGE)


async def refuse(_: HttpRequest) -> HttpAnswer:
    return refusal(HTTPStatus.UNAUTHORIZED)._replace(delay_s=60.0)


def _clients(endpoint: HttpEndpoint) -> list[Any]:
    return endpoint.places.all()


async def broken(_: HttpRequest) -> HttpAnswer:
    raise ZeroDivisionError


async def stuck(_: HttpRequest) -> HttpAnswer:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


@asynccontextmanager
async def serving() -> AsyncIterator[HttpEndpoint]:
    found = {"/hello": hello, "/large": large, "/broken": broken, "/stuck": stuck}
    pages = {path: EndpointPage(resource) for path, resource in found.items()}
    pages["/healthz"] = EndpointPage(hello, is_health=True)
    pages["/refused"] = EndpointPage(hello, refuse)
    runtime = Runtime(asyncio.get_running_loop(), now_ms=lambda: 0, rng=random.Random(1), clock_s=time.monotonic)
    endpoint = HttpEndpoint(OsNet().listen("127.0.0.1", 0), runtime, pages)
    try:
        yield endpoint
    finally:
        await endpoint.close()


def run(test: Callable[[HttpEndpoint], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120), serving() as endpoint:
            await test(endpoint)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(bounded())


async def said(endpoint: HttpEndpoint, request: bytes) -> bytes:
    """All that the endpoint answers to these bytes before it closes the connection."""
    reader, writer = await asyncio.open_connection(*endpoint.address)
    try:
        writer.write(request)
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", 200, b"hello there"),
        (b"GET /hello?a=b HTTP/1.0\r\n\r\n", 200, b"hello there"),
        (b"HEAD /hello HTTP/1.1\r\n\r\n", 200, b""),
        (b"POST /hello HTTP/1.1\r\n\r\n", 405, b"405 Method Not Allowed\n"),
        (b"GET / HTTP/1.1\r\n\r\n", 404, b"404 Not Found\n"),
        (b"GET /../hello HTTP/1.1\r\n\r\n", 404, b"404 Not Found\n"),
        (b"GET /broken HTTP/1.1\r\n\r\n", 500, b"500 Internal Server Error\n"),
        (b"hello\r\n\r\n", 400, b"400 Bad Request\n"),
        (b"\xff\x00 /hello HTTP/1.1\r\n\r\n", 405, b"405 Method Not Allowed\n"),
        (b"GET /hello HTTP/1.1\r\nX: " + b"y" * 10_000, 431, b"431 Request Header Fields Too Large\n"),
        (b"GET /hello HTTP/1.1\r\n\r\nGET /hello HTTP/1.1\r\n\r\n", 200, b"hello there"),
    ],
)
def test_answers(request_: bytes, status: int, body: bytes) -> None:
    async def test(endpoint: HttpEndpoint) -> None:
        head, _, found = (await said(endpoint, request_)).partition(b"\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {status} ".encode())
        assert b"\r\nConnection: close" in head
        assert found == body

    run(test)


def test_a_request_in_pieces() -> None:
    async def test(endpoint: HttpEndpoint) -> None:
        reader, writer = await asyncio.open_connection(*endpoint.address)
        for byte in b"GET /hello HTTP/1.1\r\n\r\n":
            writer.write(bytes([byte]))
            await writer.drain()
        writer.write_eof()
        assert (await reader.read()).endswith(b"hello there")
        writer.close()

    run(test)


def test_who_does_not_read_holds_up_nobody_and_takes_little_memory() -> None:
    async def test(endpoint: HttpEndpoint) -> None:
        sockets = []
        for _ in range(5):
            sock = socket.create_connection(endpoint.address)
            sock.sendall(b"GET /large HTTP/1.1\r\n\r\n")
            sockets.append(sock)
        await until(lambda: len(endpoint.places) == 5)
        assert (await said(endpoint, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(b"hello there")
        waiting = [each._transport.get_write_buffer_size() for each in _clients(endpoint)]
        assert max(waiting) <= 2 * len(LARGE[0]), "a chunk or two, not the whole answer"
        assert (await said(endpoint, b"GET /large HTTP/1.1\r\n\r\n")).endswith(LARGE[-1])
        for sock in sockets:
            sock.close()
        await until(lambda: not len(endpoint.places))

    run(test)


@pytest.mark.parametrize("begin", [b"", b"GET /hel", b"GET /refused HTTP/1.1\r\n\r\n"])
def test_the_silent_and_the_refused_make_room(monkeypatch: pytest.MonkeyPatch, begin: bytes) -> None:
    """Those that wait for their refusal too; the oldest first."""
    monkeypatch.setattr(limits, "METRICS_CONNECTIONS_MAX", 3)

    async def test(endpoint: HttpEndpoint) -> None:
        others = [socket.create_connection(endpoint.address) for _ in range(9)]
        for each in others:
            with contextlib.suppress(ConnectionError):
                each.sendall(begin)
        for path in ("hello", "healthz"):
            answer = await said(endpoint, f"GET /{path} HTTP/1.1\r\n\r\n".encode())
            assert answer.endswith(b"hello there")
        assert len(endpoint.places) <= 3
        for each in others:
            each.close()

    run(test)


def test_health_is_told_whatever_the_others_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRICS_CONNECTIONS_MAX", 5)
    monkeypatch.setattr(limits, "METRICS_SERVED_MAX", 2)

    async def test(endpoint: HttpEndpoint) -> None:
        served = [asyncio.ensure_future(said(endpoint, b"GET /stuck HTTP/1.1\r\n\r\n")) for _ in range(2)]
        await until(lambda: endpoint.places.served == 2)
        refused = [socket.create_connection(endpoint.address) for _ in range(9)]
        for each in refused:
            with contextlib.suppress(ConnectionError):
                each.sendall(b"GET /refused HTTP/1.1\r\n\r\n")
        assert (await said(endpoint, b"GET /healthz HTTP/1.1\r\n\r\n")).endswith(b"hello there")
        assert (await said(endpoint, b"GET /hello HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 503 ")
        assert not any(each.done() for each in served), "what is served is not given up"
        for each in refused:
            each.close()
        for task in served:
            task.cancel()

    run(test)


class _Held:
    """A connection at a stage; whether it was given up is known."""

    def __init__(self, host: str, stage: PlaceStage) -> None:
        self.host = host
        self.stage = stage
        self.is_over = False

    def abort(self) -> None:
        self.is_over = True


def test_the_address_with_the_most_connections_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRICS_CONNECTIONS_MAX", 6)
    monkeypatch.setattr(limits, "METRICS_CONNECTIONS_PER_ADDRESS_MAX", 4)
    places = Places()
    many = [
        _Held("192.0.2.1", each)
        for each in (PlaceStage.SERVED, PlaceStage.ASKING, PlaceStage.ASKING, PlaceStage.REFUSED)
    ]
    few = [_Held("192.0.2.2", PlaceStage.REFUSED), _Held("192.0.2.2", PlaceStage.SILENT)]
    for each in (*many, *few):
        assert places.make_room(each.host)
        places.take(each)
    assert places.make_room("192.0.2.3")
    assert [each.is_over for each in (*many, *few)] == [False, False, False, True, False, False]
    late = _Held("192.0.2.1", PlaceStage.SERVED)
    places.take(late)
    assert places.make_room("192.0.2.1"), "at the bound of an address, its own gives way"
    assert [each.is_over for each in (*many, *few)] == [False, True, False, True, False, False]
    for each in (*many, *few, late):
        places.leave(each)
    assert not len(places)


def test_addresses_take_turns() -> None:
    async def test() -> list[str]:
        turns, order = AddressTurns(), list[str]()

        async def check(host: str) -> None:
            async with turns.turn(host):
                order.append(host)
                await asyncio.sleep(0)

        flood = [asyncio.create_task(check("192.0.2.1")) for _ in range(9)]
        await asyncio.sleep(0)
        other = asyncio.create_task(check("192.0.2.2"))
        flood[3].cancel()
        await asyncio.gather(*flood, other, return_exceptions=True)
        await check("192.0.2.3")
        return order

    order = asyncio.run(test())
    assert order.index("192.0.2.2") <= 3
    assert (len(order), order[-1]) == (10, "192.0.2.3")


@pytest.mark.parametrize("request_", [b"", b"GET /hel", b"GET /stuck HTTP/1.1\r\n\r\n"])
def test_who_takes_too_long_is_disconnected(monkeypatch: pytest.MonkeyPatch, request_: bytes) -> None:
    monkeypatch.setattr(limits, "METRICS_REQUEST_S", 0.1)

    async def test(endpoint: HttpEndpoint) -> None:
        assert await said(endpoint, request_) == b""
        await until(lambda: not len(endpoint.places))

    run(test)


def test_a_stop_ends_what_is_under_way() -> None:
    async def test() -> None:
        async with asyncio.timeout(120):
            async with serving() as endpoint:
                answer = asyncio.ensure_future(said(endpoint, b"GET /stuck HTTP/1.1\r\n\r\n"))
                await until(lambda: any(each.task for each in _clients(endpoint)))
            assert await answer == b""

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(test())
