"""HTTPS connections whose TLS handshake does not go on: they are bounded, and others get through."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from tests.support.certificates import Authority
from tests.support.waiting import WAIT_S

from ottla.model import limits
from ottla.web.serving import WebServer, listen

CONNECTIONS_MAX = 16
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


async def hello(_: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


async def ask(port: int, trusted: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer


async def until_closed(silent: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ConnectionResetError):
        assert await loop.sock_recv(silent, 1) == b""


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"])
def test_handshakes_that_do_not_go_on_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str, sent: bytes
) -> None:
    monkeypatch.setattr(limits, "HTTPS_HANDSHAKE_S", 10 * WAIT_S)  # so only their number can end them
    authority = Authority()
    authority.server().write(tmp_path, "web")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "web.pem")
    trusted = ssl.create_default_context(cadata=authority.pem)

    async def test() -> None:
        listening = await listen("127.0.0.1", 0)
        port = listening.getsockname()[1]
        server = WebServer(Starlette(routes=[Route("/", hello)]), listening, connections_max=CONNECTIONS_MAX, tls=tls)
        await server.start()
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(3 * CONNECTIONS_MAX)]
        try:
            for each in silent:
                each.setblocking(False)
                each.send(sent)
            assert (await ask(port, trusted)).endswith(b"hello")
            kept = CONNECTIONS_MAX // 2 // limits.HTTP_ADDRESS_PART  # all of them have one address
            await asyncio.gather(*map(until_closed, silent[:-kept]))
        finally:
            await server.stop()
        await asyncio.gather(*map(until_closed, silent[-kept:]))
        for each in silent:
            each.close()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(asyncio.wait_for(test(), WAIT_S))


@pytest.mark.parametrize("loop", LOOPS)
def test_an_address_gives_up_its_own_handshakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    """A flood of one address leaves the unfinished handshake of another one alone, although that is the oldest."""
    monkeypatch.setattr(limits, "HTTPS_HANDSHAKE_S", 10 * WAIT_S)
    authority = Authority()
    authority.server().write(tmp_path, "web")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "web.pem")

    async def test() -> None:
        listening = await listen("127.0.0.1", 0)
        port = listening.getsockname()[1]
        server = WebServer(Starlette(routes=[Route("/", hello)]), listening, connections_max=CONNECTIONS_MAX, tls=tls)
        await server.start()
        other = socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0))
        other.setblocking(False)
        flood = [socket.create_connection(("127.0.0.1", port)) for _ in range(3 * CONNECTIONS_MAX)]
        try:
            for each in flood:
                each.setblocking(False)
            await asyncio.gather(*map(until_closed, flood[: -CONNECTIONS_MAX // 4]))
            with pytest.raises(BlockingIOError):
                other.recv(1)
        finally:
            await server.stop()
        for each in (other, *flood):
            each.close()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(asyncio.wait_for(test(), WAIT_S))


def test_a_port_without_descriptors_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`accept` fails as it does when the process may open no more files; later it works again."""
    monkeypatch.setattr(limits, "HTTPS_ACCEPT_PAUSE_S", 0.01)
    authority = Authority()
    authority.server().write(tmp_path, "web")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "web.pem")
    trusted = ssl.create_default_context(cadata=authority.pem)

    class Poor(socket.socket):
        failures = 5

        def accept(self) -> tuple[socket.socket, Any]:
            if self.failures:
                self.failures -= 1
                raise OSError(24, "Too many open files")
            return super().accept()

    async def test() -> None:
        bound = await listen("127.0.0.1", 0)
        listening = Poor(fileno=bound.detach())
        listening.setblocking(False)
        server = WebServer(Starlette(routes=[Route("/", hello)]), listening, tls=tls)
        await server.start()
        try:
            assert (await ask(listening.getsockname()[1], trusted)).endswith(b"hello")
        finally:
            await server.stop()
        assert listening.failures == 0

    asyncio.run(asyncio.wait_for(test(), WAIT_S))
