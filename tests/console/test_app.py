"""The console's frame: pages, errors, the gate, static files."""

from __future__ import annotations

import pytest
from tests.console.consoles import Visitor, running_console

from ottla.console import pages
from ottla.console.options import ConsoleOptions
from ottla.console.routing import ROUTES
from ottla.testing.broker import EmbeddedBroker


def test_the_first_page(visitor: Visitor) -> None:
    shown = visitor.get("/")
    assert shown.status == 200
    assert "Overview" in shown.words
    assert "script-src 'self'" in shown.headers["content-security-policy"]
    assert "unsafe" not in shown.headers["content-security-policy"]


@pytest.mark.parametrize("name", ["console.css", "console.js", "icon.svg"])
def test_static_files(visitor: Visitor, name: str) -> None:
    page = visitor.get("/")
    address = next(part for part in page.text.split('"') if part.endswith(f"/{name}"))
    shown = visitor.get(address)
    assert (shown.status, "immutable" in shown.headers["cache-control"]) == (200, True)
    assert visitor.get(f"/static/another/{name}").headers["cache-control"] == "no-store"


def test_no_such_page(visitor: Visitor) -> None:
    shown = visitor.get("/nosuch/page/here")
    assert (shown.status, "there is no such page" in shown.words) == (404, True)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "localhost.evil.example:8090"])
def test_another_name_is_refused(visitor: Visitor, host: str) -> None:
    assert visitor.get("/", headers={"Host": host}).status == 421


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_another_site_sends_no_form(visitor: Visitor, headers: dict[str, str]) -> None:
    assert visitor.post("/sign-out", {}, headers=headers).status == 403


def test_a_form_needs_the_token_of_its_session(visitor: Visitor) -> None:
    for token in ("", "x", "\ud800"):
        assert visitor.post("/sign-out", {"_token": token.encode("utf-8", "replace").decode()}).status == 403


def test_no_broker_is_a_page_that_says_so(broker: EmbeddedBroker) -> None:
    with running_console(ConsoleOptions("127.0.0.1:1", port=0)) as console:
        shown = Visitor(console.url).get("/")
    assert (shown.status, "Traceback" in shown.text) == (502, False)


def test_read_only_mode_refuses_each_action(broker: EmbeddedBroker) -> None:
    pages.load()
    actions = [each for each in ROUTES if each.method == "POST" and not each.in_read_only]
    with running_console(ConsoleOptions(broker.bootstrap, port=0, read_only=True)) as console:
        visitor = Visitor(console.url)
        for each in actions:
            shown = visitor.post(each.pattern.replace("{", "").replace("}", ""), {})
            assert (shown.status, "read-only" in shown.words) == (403, True), each.pattern
