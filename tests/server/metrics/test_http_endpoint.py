"""The endpoint against slow, hostile and many clients: it answers the others and forgets these."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from tests.server.nodes import until

from ottla.model import limits
from ottla.server.loop.runtime import Runtime
from ottla.server.metrics.http_endpoint import HttpAnswer, HttpEndpoint, HttpRequest
from ottla.server.ports.sockets import OsNet
from ottla.server.process import loop_factory

LARGE = [bytes([65 + number % 26]) * 1_000_000 for number in range(20)]


async def hello(_: HttpRequest) -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, (b"hello ", b"there"))


async def large(_: HttpRequest) -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, LARGE)


async def broken(_: HttpRequest) -> HttpAnswer:
    raise ZeroDivisionError


async def stuck(_: HttpRequest) -> HttpAnswer:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


@asynccontextmanager
async def serving() -> AsyncIterator[HttpEndpoint]:
    resources = {"/hello": hello, "/large": large, "/broken": broken, "/stuck": stuck}
    runtime = Runtime(asyncio.get_running_loop(), now_ms=lambda: 0, rng=random.Random(1), clock_s=time.monotonic)
    endpoint = HttpEndpoint(OsNet().listen("127.0.0.1", 0), runtime, resources)
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
        await until(lambda: len(endpoint.clients) == 5)
        assert (await said(endpoint, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(b"hello there")
        waiting = [each._transport.get_write_buffer_size() for each in endpoint.clients if each._transport is not None]
        assert max(waiting) <= 2 * len(LARGE[0]), "a chunk or two, not the whole answer"
        assert (await said(endpoint, b"GET /large HTTP/1.1\r\n\r\n")).endswith(LARGE[-1])
        for sock in sockets:
            sock.close()
        await until(lambda: not endpoint.clients)

    run(test)


def test_too_many_clients_are_closed_and_the_next_one_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRICS_CONNECTIONS_MAX", 3)

    async def test(endpoint: HttpEndpoint) -> None:
        silent = [socket.create_connection(endpoint.address) for _ in range(3)]
        await until(lambda: len(endpoint.clients) == 3)
        assert await said(endpoint, b"GET /hello HTTP/1.1\r\n\r\n") == b""
        silent.pop().close()
        await until(lambda: len(endpoint.clients) == 2)
        assert (await said(endpoint, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(b"hello there")
        for each in silent:
            each.close()

    run(test)


@pytest.mark.parametrize("request_", [b"", b"GET /hel", b"GET /stuck HTTP/1.1\r\n\r\n"])
def test_who_takes_too_long_is_disconnected(monkeypatch: pytest.MonkeyPatch, request_: bytes) -> None:
    monkeypatch.setattr(limits, "METRICS_REQUEST_S", 0.1)

    async def test(endpoint: HttpEndpoint) -> None:
        assert await said(endpoint, request_) == b""
        await until(lambda: not endpoint.clients)

    run(test)


def test_a_stop_ends_what_is_under_way() -> None:
    async def test() -> None:
        async with asyncio.timeout(120):
            async with serving() as endpoint:
                answer = asyncio.ensure_future(said(endpoint, b"GET /stuck HTTP/1.1\r\n\r\n"))
                await until(lambda: any(each.task for each in endpoint.clients))
            assert await answer == b""

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(test())
