"""The frame around every handler: whatever goes wrong in or after it becomes an answer, and is noted."""

from __future__ import annotations

import asyncio
import io
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator

import pytest
from tests.console.consoles import Visitor, running_console
from tests.support.waiting import until

from ottla.console import app
from ottla.console.answers import Answer, FileAnswer, Page, PartStream, Redirect, StreamPart
from ottla.console.call import PageCall
from ottla.console.html import tag
from ottla.console.options import ConsoleOptions
from ottla.console.routing import PageRoute, RouteTable
from ottla.console.service import ConsoleService
from ottla.model import limits
from ottla.observe import logs

NO_BROKER = ConsoleOptions("127.0.0.1:1", port=0)
UNSAFE = Page("Unsafe", "", trail=(("out", "//evil.example"),))


class OwnPages:
    """A console with routes of the test only."""

    def __init__(self, console: ConsoleService) -> None:
        self.visitor = Visitor(console.url)
        assert console._sessions is not None
        everybody = console._sessions.find(None)
        assert everybody is not None
        self.session = everybody
        self.closed: list[str] = []

    def post(self, path: str) -> int:
        return self.visitor.post(path, {"_token": self.session.token}).status

    async def endless(self) -> AsyncGenerator[StreamPart, None]:
        try:
            while True:
                yield StreamPart("found", tag("p", "x" * 10_000))
                await asyncio.sleep(0.001)
        finally:
            self.closed.append("endless")

    async def busy(self) -> AsyncGenerator[StreamPart, None]:
        """Never waits for anything."""
        while True:
            yield StreamPart("found", tag("p", "one"))
            time.sleep(0.01)  # noqa: ASYNC251

    async def silent(self) -> AsyncGenerator[StreamPart, None]:
        yield StreamPart("found", tag("p", "one"))
        await asyncio.sleep(600)

    async def file(self) -> AsyncGenerator[bytes, None]:
        yield b"one"


def failing(error: Exception) -> Answer:
    raise error


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnPages]:
    table = RouteTable()
    monkeypatch.setattr(app, "ROUTES", table)
    with running_console(NO_BROKER) as console:
        pages = OwnPages(console)

        def declare(method: str, pattern: str, answer: Callable[[], Answer]) -> None:
            async def handler(call: PageCall) -> Answer:
                return answer()

            table.add(PageRoute(method, pattern, handler))

        declare("GET", "/late", lambda: failing(TimeoutError()))
        declare("GET", "/lost", lambda: failing(ConnectionResetError()))
        declare("GET", "/unreadable", lambda: failing(PermissionError(13, "Permission denied", "/some/file")))
        declare("GET", "/fine", lambda: Page("Fine", "it is fine"))
        declare("GET", "/unsafe", lambda: UNSAFE)
        declare("GET", "/far", lambda: Redirect("/€\ud800?q=a b\r\nx=%2F"))
        declare("GET", "/endless", lambda: PartStream(pages.endless()))
        declare("GET", "/busy", lambda: PartStream(pages.busy()))
        declare("GET", "/silent", lambda: PartStream(pages.silent()))
        declare("GET", "/file", lambda: FileAnswer(pages.file(), "text/plain"))
        declare("POST", "/refused", lambda: Page("No", "no", status=403))
        declare("POST", "/done", lambda: Redirect("/fine"))
        declare("POST", "/other", lambda: Redirect("/fine"))
        declare("POST", "/unsafe", lambda: UNSAFE)
        yield pages


def test_an_error_while_a_page_is_rendered_is_a_page(console: OwnPages) -> None:
    shown = console.visitor.get("/unsafe")
    assert (shown.status, "an error in the console" in shown.words) == (500, True)
    assert "script-src 'self'" in shown.headers["content-security-policy"]
    assert console.visitor.get("/fine").status == 200


def test_only_errors_of_the_network_are_told_as_such(console: OwnPages, caplog: pytest.LogCaptureFixture) -> None:
    late, lost = console.visitor.get("/late"), console.visitor.get("/lost")
    assert (late.status, lost.status, caplog.records) == (502, 502, [])
    assert "no answer came in time" in late.words and "are the brokers up?" in lost.words
    broken = console.visitor.get("/unreadable")
    assert (broken.status, "are the brokers up?" in broken.words, "/some/file" in broken.words) == (500, False, False)
    (logged,) = caplog.records
    assert logged.exc_info and isinstance(logged.exc_info[1], PermissionError)


def test_an_error_in_the_frame_itself_still_has_the_headers(console: OwnPages, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bytes:
        raise RecursionError

    monkeypatch.setattr(app, "document", broken)
    shown = console.visitor.get("/fine")
    assert (shown.status, "an error in the console" in shown.text) == (500, True)
    assert "script-src 'self'" in shown.headers["content-security-policy"]


def test_the_address_of_a_redirect_may_have_any_characters(console: OwnPages) -> None:
    shown = console.visitor._once("GET", "/far", None, {})
    assert (shown.status, shown.headers["location"]) == (303, "/%E2%82%AC??q=a%20b%0D%0Ax=%2F")


@pytest.mark.parametrize("path", ["/silent", "/busy"])
def test_a_stream_that_takes_too_long_says_so(console: OwnPages, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(limits, "CONSOLE_STREAM_S", 0.3)
    parts = console.visitor.stream(path)
    assert (parts[0]["into"], parts[-1]["into"]) == ("found", "failed")
    assert "the longest that it may take" in parts[-1]["html"]
    until(lambda: console.session.requests, lambda count: count == 0)


def test_a_client_that_leaves_ends_a_stream(console: OwnPages) -> None:
    with console.visitor.opened("/endless") as answer:
        assert answer.read(1000)
        assert console.session.requests == 1
    until(lambda: console.closed, lambda closed: closed == ["endless"])
    until(lambda: console.session.requests, lambda count: count == 0)


@pytest.mark.parametrize("path", ["/silent", "/file"])
def test_a_stream_for_which_there_is_no_room_is_refused_before_it_begins(
    console: OwnPages, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(limits, "CONSOLE_REQUESTS_PER_SESSION_MAX", 1)
    with console.visitor.opened("/endless") as answer:
        assert answer.read(1000)
        shown = console.visitor.get(path)
        assert (shown.status, "the console is busy" in shown.words) == (503, True)
    until(lambda: console.session.requests, lambda count: count == 0)
    assert console.visitor.get("/file").text == "one", "a stream is one request, not two"


def test_the_log_tells_how_an_action_has_ended(console: OwnPages, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.console.action_log")
    assert [console.post(path) for path in ("/done", "/refused", "/unsafe")] == [200, 403, 500]
    assert console.visitor.post("/done", {}).status == 403
    assert console.visitor.post("/nosuch", {}, headers={"Host": "evil.example"}).status == 421
    assert [each.getMessage() for each in caplog.records if each.name.startswith("ottla.console.action_log")] == [
        "everybody at 127.0.0.1: /done ended with status 303",
        "everybody at 127.0.0.1: /refused failed with status 403",
        "everybody at 127.0.0.1: /unsafe failed with status 500",
        "everybody at 127.0.0.1: the gate refused /done with status 403",
        "nobody at 127.0.0.1: the gate refused /nosuch with status 421",
    ]


def test_no_flood_hides_an_action_and_no_level_the_action_log(console: OwnPages) -> None:
    """As under `ottla up`, which gives its console the level WARNING."""
    stream = io.StringIO()
    handler = logs.set_up(stream, level="WARNING")
    try:
        assert {console.post("/done") for _ in range(30)} == {200}
        assert {console.post("/refused") for _ in range(30)} == {403}
        assert {console.visitor.post("/done", {}).status for _ in range(30)} == {403}
        assert console.post("/other") == 200
    finally:
        logs.tear_down(handler)
    written = stream.getvalue()
    assert written.count("INFO    console.action_log: everybody at 127.0.0.1: /done ended with status 303") == 30
    assert written.count("/refused failed with status 403") == 30
    assert written.count("/other ended with status 303") == 1
    assert 0 < written.count("the gate refused /done") < 30, "who has not passed the gate has done nothing"
