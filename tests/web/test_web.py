"""The HTTP kit: media types, bounded bodies, serving inside somebody else's loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.support.waiting import WAIT_S

from ottla.model import limits
from ottla.web.answers import JSON, REGISTRY_JSON, REGISTRY_MEDIA_TYPES, json_answer, media_type_for, status_of
from ottla.web.bodies import BodyBound
from ottla.web.serving import WebServer, listen

OLDER = REGISTRY_MEDIA_TYPES[1]


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (None, REGISTRY_JSON),
        ("", REGISTRY_JSON),
        ("*/*", REGISTRY_JSON),
        ("application/*", REGISTRY_JSON),
        (JSON, JSON),
        (f"text/html, {JSON};q=0.5", JSON),
        (f"{JSON};q=0.5, {OLDER}", OLDER),
        (f"{REGISTRY_JSON}, {OLDER}; q=0.9, {JSON}; q=0.5", REGISTRY_JSON),
        (f"*/*;q=0.1, {JSON}", JSON),
        ("text/html", None),
        (f"{JSON};q=0", None),
        (f"{JSON};q=nonsense", None),
    ],
)
def test_the_client_chooses_the_media_type(accept: str | None, wanted: str | None) -> None:
    assert media_type_for(accept, REGISTRY_MEDIA_TYPES) == wanted


def test_codes_carry_the_status() -> None:
    assert [status_of(code) for code in (404, 40401, 50003)] == [404, 404, 500]
    assert json_answer({"ä": [1]}).body == '{"ä":[1]}'.encode()


async def count(request: Request) -> Response:
    return json_answer({"bytes": len(await request.body())})


def serve(talk: Any, **bounds: Any) -> Any:
    """Runs `talk(reader, writer)` against a service on a free port."""

    async def run() -> Any:
        listening = await listen("127.0.0.1", 0)
        host, port = listening.getsockname()
        server = WebServer(Starlette(routes=[Route("/", count, methods=["POST"])]), listening, **bounds)
        await server.start()
        try:
            reader, writer = await asyncio.open_connection(host, port)
            try:
                async with asyncio.timeout(WAIT_S):
                    return await talk(reader, writer)
            finally:
                writer.close()
        finally:
            await server.stop()

    return asyncio.run(run())


def test_a_body_that_is_announced_too_long_is_refused_unread() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (limits.HTTP_BODY_BYTES_MAX + 1))
        return await reader.readline()

    assert serve(talk).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"\x16\x03\x01\x02\0\x01\0\r\n\r\n", "speaks TLS, but this port serves plain HTTP"),
        (b"?\r\n\r\n", "speaks no HTTP"),
    ],
)
def test_who_speaks_something_else_is_logged_with_its_address(
    caplog: pytest.LogCaptureFixture, sent: bytes, told: str
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        host, port = writer.get_extra_info("sockname")
        again_reader, again = await asyncio.open_connection(*writer.get_extra_info("peername"))
        writer.write(sent)
        answer = await reader.readline()
        again.write(sent)
        await again_reader.readline()
        again.close()
        assert caplog.messages == [f"{host}:{port} {told}"], "one line for both"
        return answer

    assert serve(talk).startswith(b"HTTP/1.1 400")


def test_a_body_that_only_turns_out_too_long_is_refused() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n%s\r\n" % (limits.MIB, bytes(limits.MIB))
        for _ in range(limits.HTTP_BODY_BYTES_MAX // limits.MIB + 1):
            writer.write(chunk)
        return await reader.readline()

    assert serve(talk).startswith(b"HTTP/1.1 413")


def test_a_body_of_the_allowed_length_is_taken() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        size_bytes = limits.HTTP_BODY_BYTES_MAX
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (size_bytes, bytes(size_bytes)))
        await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(len(b'{"bytes":%d}' % size_bytes))

    assert serve(talk) == b'{"bytes":%d}' % limits.HTTP_BODY_BYTES_MAX


HALF = b"POST / HTTP/1.1\r\nhost: x\r\nx: "
WHOLE = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"


def test_who_asks_for_nothing_gives_way() -> None:
    """Many more half heads than there may be connections, all at once; then somebody with a request."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        host, port = writer.get_extra_info("peername")
        others = await asyncio.gather(*(asyncio.open_connection(host, port) for _ in range(200)))
        for _, other in others:
            other.write(HALF)
        asking, asker = await asyncio.open_connection(host, port)
        asker.write(WHOLE)
        status = await asking.readline()
        assert await reader.read() == b"", "the longest waiting one is closed"
        for _, other in [*others, (asking, asker)]:
            other.close()
        return status

    assert serve(talk, connections_max=10).startswith(b"HTTP/1.1 200")


BUSY = WHOLE.replace(b": 0", b": 5")  # a request whose body does not come


def test_one_address_has_at_most_half_of_the_connections() -> None:
    """Whatever 127.0.0.1 does, 127.0.0.2 is answered on the connection that it has, and on a new one."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> list[bytes]:
        host, port = writer.get_extra_info("peername")
        kept_reader, kept = await asyncio.open_connection(host, port, local_addr=("127.0.0.2", 0))
        kept.write(WHOLE)
        answers = [await kept_reader.readline()]
        await kept_reader.readuntil(b'{"bytes":0}')
        flood = await asyncio.gather(*(asyncio.open_connection(host, port) for _ in range(100)))
        for _, each in flood:
            each.write(HALF)
        assert await reader.read() == b"", "the one that has been idle for longest of the address is closed"
        kept.write(WHOLE)
        answers.append(await kept_reader.readline())
        new_reader, new = await asyncio.open_connection(host, port, local_addr=("127.0.0.2", 0))
        new.write(WHOLE)
        answers.append(await new_reader.readline())
        for _, each in [*flood, (kept_reader, kept), (new_reader, new)]:
            each.close()
        return [each[:12] for each in answers]

    assert serve(talk, connections_max=10) == [b"HTTP/1.1 200"] * 3


def test_an_address_whose_connections_all_have_a_request_gets_no_more() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> list[bytes]:
        host, port = writer.get_extra_info("peername")
        busy = [(reader, writer), *[await asyncio.open_connection(host, port) for _ in range(4)]]
        for _, each in busy:
            each.write(BUSY)
        answers = []
        for local in ("127.0.0.1", "127.0.0.2"):
            asking, asker = await asyncio.open_connection(host, port, local_addr=(local, 0))
            asker.write(WHOLE)
            answers.append(await asking.readline())
            asker.close()
        for _, each in busy:
            each.write(b"12345")
        answers += [await each.readline() for each, _ in busy]
        asking, asker = await asyncio.open_connection(host, port)
        asker.write(WHOLE)
        answers.append(await asking.readline())
        for _, each in [*busy[1:], (asking, asker)]:
            each.close()
        return [each[:12] for each in answers]

    assert serve(talk, connections_max=10) == [b"HTTP/1.1 503", *[b"HTTP/1.1 200"] * 7]


@pytest.mark.parametrize("begin", [b"", HALF, WHOLE, WHOLE + HALF], ids=["nothing", "half", "one", "one and a half"])
def test_nobody_waits_for_a_request_for_ever(begin: bytes) -> None:
    """Whether it sends nothing, or a byte now and then."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def drip() -> None:
            writer.write(begin)
            while begin.endswith(HALF):
                await asyncio.sleep(0.02)
                writer.write(b"x")

        dripping = asyncio.create_task(drip())
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(60):
                await reader.read()  # to the end of the connection
        dripping.cancel()

    serve(talk, wait_s=0.2)


def test_a_request_under_way_is_not_disturbed() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(WHOLE.replace(b": 0", b": 5"))
        for byte in b"12345":
            await asyncio.sleep(0.1)
            writer.write(bytes([byte]))
        await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(len(b'{"bytes":5}'))

    assert serve(talk, wait_s=0.2) == b'{"bytes":5}'


SCOPE = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
COUNTING = Starlette(routes=[Route("/", count, methods=["POST"])])


async def post(bound: BodyBound, size: int, rest: asyncio.Event | None = None, host: str = "") -> int:
    """The status of the answer; with `rest`, the end of the body comes when that is set."""
    parts = [(bytes(size), rest is not None), (b"", False)]
    statuses: list[int] = []

    async def receive() -> Any:
        if len(parts) == 1 and rest is not None:
            await rest.wait()
        body, more = parts.pop(0)
        return {"type": "http.request", "body": body, "more_body": more}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await bound({**SCOPE, "client": (host, 1)}, receive, send)
    return statuses[0]


def test_all_bodies_together_are_bounded() -> None:
    async def test() -> list[int]:
        bound, rest = BodyBound(COUNTING, 10, all_bytes_max=15), asyncio.Event()
        first = asyncio.create_task(post(bound, 9, rest))
        await asyncio.sleep(0)
        beside = [await post(bound, 6), await post(bound, 9)]
        rest.set()
        return [*beside, await first, await post(bound, 9)]

    assert asyncio.run(test()) == [200, 200, 503, 200], "the oldest that is being read gives way"


def test_whole_bodies_do_not_give_way() -> None:
    async def test() -> list[int]:
        free = asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await free.wait()
            await COUNTING(scope, receive, send)

        bound = BodyBound(slow, 10, all_bytes_max=15)
        first = asyncio.create_task(post(bound, 9))
        await asyncio.sleep(0)
        refused = await post(bound, 9)
        first.cancel()
        free.set()
        return [refused, await post(BodyBound(COUNTING, 10, all_bytes_max=15), 9)]

    assert asyncio.run(test()) == [503, 200]


def test_the_address_that_holds_most_loses_its_oldest_body() -> None:
    async def test() -> list[int]:
        bound, rest = BodyBound(COUNTING, 10, all_bytes_max=30), asyncio.Event()
        little = asyncio.create_task(post(bound, 3, rest, "192.0.2.1"))
        many = [asyncio.create_task(post(bound, 9, rest, "192.0.2.2")) for _ in range(3)]
        await asyncio.sleep(0)
        beside = await post(bound, 9, host="192.0.2.3")
        rest.set()
        return [beside, await little, *[await each for each in many]]

    assert asyncio.run(test()) == [200, 200, 503, 200, 200]


def test_a_body_is_taken_when_the_application_asks_for_it() -> None:
    """One that refuses the head needs no body; one that asks gets it, or the refusal."""

    async def test() -> list[int]:
        async def refusing(scope: Any, receive: Any, send: Any) -> None:
            await Response(status_code=401)(scope, receive, send)

        async def asking(scope: Any, receive: Any, send: Any) -> None:
            body = (await receive())["body"]
            await Response(body)(scope, receive, send)

        never = asyncio.Event()
        refused = await post(BodyBound(refusing, 10, on_demand=True), 9, never)
        bound = BodyBound(asking, 10, on_demand=True, patience_s=0.01)
        return [refused, await post(bound, 9), await post(bound, 11), await post(bound, 9, never)]

    assert asyncio.run(test()) == [401, 200, 413, 408]


def test_a_long_head_is_refused_before_all_of_it_has_come() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(HALF + b"a" * (limits.HTTP_HEAD_BYTES_MAX + 1))
        return await reader.readline()

    assert serve(talk).startswith(b"HTTP/1.1 400")


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def test() -> list[int]:
        bound = BodyBound(COUNTING, 10, all_bytes_max=10, patience_s=0.01)
        return [await post(bound, 9, asyncio.Event()), await post(BodyBound(COUNTING, 10), 9)]

    assert asyncio.run(test()) == [408, 200]


def test_a_port_that_is_taken_is_an_error_of_the_caller() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            asyncio.run(listen("127.0.0.1", port))
