"""The console's frame: pages, errors, the gate, static files."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from tests.console.consoles import Shown, Visitor, running_console

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


OTHER_SITES = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://["},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


def token_in(shown: Shown) -> str:
    """The token of a page's form: with it, only what the test is about refuses an action."""
    return shown.text.split('name="_token" value="')[1].partition('"')[0]


def is_topic(broker: EmbeddedBroker, name: str) -> bool:
    return name in AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=30).topics


def test_another_site_sends_no_form(broker: EmbeddedBroker, visitor: Visitor) -> None:
    form = {"_token": token_in(visitor.get("/topics/+new")), "name": "forged"}
    for headers in OTHER_SITES:
        shown = visitor.post("/topics/+new", form, headers=headers)
        assert (shown.status, "another site sent this form" in shown.words) == (403, True), headers
        assert not is_topic(broker, "forged")
    assert visitor.post("/topics/+new", form).status == 200
    assert is_topic(broker, "forged"), "nothing but the site was wrong with the form"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_loads_nothing_but_may_link(visitor: Visitor, site: str) -> None:
    for mode in ("no-cors", "cors", "websocket", ""):
        shown = visitor.get("/topics", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode})
        assert (shown.status, "another site loads this page" in shown.words) == (403, True), mode
    assert visitor.get("/topics", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}).status == 200


def test_a_form_needs_the_token_of_its_session(broker: EmbeddedBroker, visitor: Visitor) -> None:
    for token in ("", "x", "\ud800"):
        form = {"_token": token.encode("utf-8", "replace").decode(), "name": "tokenless"}
        shown = visitor.post("/topics/+new", form)
        assert (shown.status, "this form is too old" in shown.words) == (403, True)
        assert not is_topic(broker, "tokenless")


def test_no_broker_is_a_page_that_says_so(broker: EmbeddedBroker) -> None:
    with running_console(ConsoleOptions("127.0.0.1:1", port=0)) as console:
        shown = Visitor(console.url).get("/")
    assert (shown.status, "Traceback" in shown.text) == (502, False)


def test_read_only_mode_refuses_each_action(broker: EmbeddedBroker) -> None:
    pages.load()
    actions = [each for each in ROUTES if each.method == "POST" and not each.in_read_only]
    with running_console(ConsoleOptions(broker.bootstrap, port=0, read_only=True)) as console:
        visitor = Visitor(console.url)
        assert console._sessions is not None
        everybody = console._sessions.find(None)
        assert everybody is not None
        form = {"_token": everybody.token, "name": "unwritten"}  # its pages have no forms, so no token either
        for each in actions:
            shown = visitor.post(each.pattern.replace("{", "").replace("}", ""), form)
            assert (shown.status, "the console is read-only" in shown.words) == (403, True), each.pattern
    assert not is_topic(broker, "unwritten")
