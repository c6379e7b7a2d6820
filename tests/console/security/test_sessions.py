"""Sessions: when they end, how many there are, and whose forms they take."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.console.consoles import Visitor
from tests.console.pages.groups.people import token
from tests.console.signed_in import secured_console, signed_in
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.console.access import Access
from ottla.console.options import ConsoleOptions
from ottla.console.security.gate import COOKIE
from ottla.console.security.sessions import Sessions
from ottla.model import limits
from ottla.testing.secure import SecureBroker


class Watch:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def an_access(user: str = "") -> Access:
    access = Access(ConsoleOptions("127.0.0.1:1"))
    access.user = user
    return access


def test_a_session_ends_when_nobody_comes() -> None:
    async def run() -> None:
        watch = Watch()
        sessions = Sessions(watch)
        session = sessions.begin(an_access())
        watch.now_s += limits.CONSOLE_SESSION_IDLE_S - 1
        assert sessions.find(session.id) is session
        watch.now_s += limits.CONSOLE_SESSION_IDLE_S - 1
        assert sessions.find(session.id) is session, "a request makes it last longer"
        watch.now_s += limits.CONSOLE_SESSION_IDLE_S - 1
        assert sessions.find(session.id, is_used=False) is session
        watch.now_s += 2
        assert sessions.find(session.id, is_used=False) is None, "a page that renews itself does not"
        session = sessions.begin(an_access())
        watch.now_s += limits.CONSOLE_SESSION_IDLE_S + 1
        session.requests = 1
        assert sessions.find(session.id) is session, "it is not idle while a stream runs"
        session.requests = 0
        watch.now_s += limits.CONSOLE_SESSION_IDLE_S + 1
        assert sessions.find(session.id) is None
        assert sessions.find("") is None and sessions.find(None) is None
        await sessions.close()

    asyncio.run(run())


def test_a_session_ends_by_its_age_however_busy_it_is() -> None:
    async def run() -> None:
        watch = Watch()
        sessions = Sessions(watch)
        session = sessions.begin(an_access())
        session.requests = 1
        for _ in range(limits.CONSOLE_SESSION_S // 1_000):
            assert sessions.find(session.id) is session
            watch.now_s += 1_000
        watch.now_s += 1_000
        assert sessions.find(session.id) is None
        await sessions.close()

    asyncio.run(run())


def test_the_session_that_was_idle_longest_makes_room() -> None:
    async def run() -> None:
        watch = Watch()
        sessions = Sessions(watch)
        begun = []
        for number in range(limits.CONSOLE_SESSIONS_MAX):
            watch.now_s += 1
            begun.append(sessions.begin(an_access("many" if number < 2 else f"user-{number}")))
        watch.now_s += 1
        assert sessions.find(begun[0].id) is begun[0]
        new = sessions.begin(an_access())
        assert sessions.find(begun[1].id) is None, "it was idle longest, of the user with most"
        assert all(sessions.find(each.id) is each for each in (begun[0], *begun[2:], new))
        assert len({each.id for each in (*begun, new)} | {each.token for each in (*begun, new)}) == 2 * len(begun) + 2
        await sessions.close()

    asyncio.run(run())


def test_who_signs_in_again_and_again_signs_nobody_else_out() -> None:
    async def run() -> None:
        watch = Watch()
        sessions = Sessions(watch)
        admin = sessions.begin(an_access("admin"))
        for _ in range(3 * limits.CONSOLE_SESSIONS_MAX):
            watch.now_s += 1
            last = sessions.begin(an_access("zed"))
        assert sessions.find(admin.id) is admin and sessions.find(last.id) is last
        for _ in range(7):
            sessions.count_requests(last, 1)
        sessions.end(last)
        assert last.ended.is_set()
        assert (sessions.requests.of("zed"), sessions.requests.of("admin")) == (7, 0), "until they were answered"
        for _ in range(7):
            sessions.count_requests(last, -1)
        assert (sessions.requests.of("zed"), sessions.requests.of_all) == (0, 0)
        await sessions.close()

    asyncio.run(run())


def test_old_sessions_end_when_another_begins() -> None:
    async def run() -> None:
        watch = Watch()
        sessions = Sessions(watch)
        closed: list[str] = []
        access = an_access()
        access.kept(str, lambda _: "kept", lambda _: closed.append("closed"))
        sessions.begin(access)
        watch.now_s += limits.CONSOLE_SESSION_IDLE_S + 1
        sessions.begin(an_access())
        await sessions.close()
        assert closed == ["closed"], "what its pages kept ends with it"

    asyncio.run(run())


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with SecureBroker(tmp_path_factory.mktemp("secure")) as broker:
        yield broker


@pytest.fixture(scope="module")
def url(secure: SecureBroker) -> Iterator[str]:
    with secured_console(secure) as url:
        yield url


def test_a_page_that_is_left_open_is_not_signed_in_for_ever(
    secure: SecureBroker, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = signed_in(url, "admin", secure.security_of("admin")["sasl.password"])
    monkeypatch.setattr(limits, "CONSOLE_SESSION_IDLE_S", 2)
    assert visitor.get("/topics").status == 200
    until(lambda: visitor.part("/overview/now").status, lambda status: status == 401)
    assert visitor.get("/topics").path.startswith("/sign-in")


def test_a_form_of_another_session_is_refused(secure: SecureBroker, url: str) -> None:
    password = secure.security_of("admin")["sasl.password"]
    first, second = signed_in(url, "admin", password), signed_in(url, "admin", password)
    fields = {"name": "by-another", "_token": token(first, "/topics/+new")}
    refused = second.post("/topics/+new", fields)
    assert (refused.status, "not of this session" in refused.words) == (403, True)
    with Blocking(secure.bootstrap, security=secure.security) as client:
        assert "by-another" not in client.admin.topics.names()
    assert first.post("/topics/+new", fields).status == 200


def test_a_session_that_was_signed_out_is_over(secure: SecureBroker, url: str) -> None:
    visitor = signed_in(url, "admin", secure.security_of("admin")["sasl.password"])
    kept = dict(visitor.cookies)
    given = token(visitor, "/topics/+new")
    visitor.post("/sign-out", {"_token": given})
    visitor.cookies = kept
    assert visitor.get("/topics").path.startswith("/sign-in")
    visitor.cookies = kept
    late = visitor.post("/topics/+new", {"_token": given, "name": "late"})
    assert late.path.startswith("/sign-in")
    assert visitor.part("/overview/now").status == 401, "the script reloads the page then"


def test_an_old_cookie_is_not_taken_over(secure: SecureBroker, url: str) -> None:
    visitor = Visitor(url)
    visitor.cookies = {COOKIE: "chosen-by-another"}
    password = secure.security_of("admin")["sasl.password"]
    assert visitor.send("/sign-in", "/sign-in", user="admin", password=password).status == 200
    assert visitor.cookies[COOKIE] != "chosen-by-another"


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/\n/evil.example",
        "/ok\r\nSet-Cookie: a=b",
        " //evil.example",
        "",
    ],
)
def test_signing_in_leads_nowhere_else(url: str, to: str) -> None:
    visitor = Visitor(url)
    for shown in (visitor.get(f"/sign-in?to={quote(to)}"), visitor.send("/sign-in", "/sign-in", to=to, user="a")):
        assert re.findall('name="to" value="([^"]*)"', shown.text) == ["/"]


def test_a_target_elsewhere_is_not_gone_to(secure: SecureBroker, url: str) -> None:
    password = secure.security_of("admin")["sasl.password"]
    shown = Visitor(url).send("/sign-in", "/sign-in", user="admin", password=password, to="//evil.example")
    assert (shown.status, shown.path) == (200, "/")


def test_signing_in_leads_to_the_page_that_was_asked_for(secure: SecureBroker, url: str) -> None:
    visitor = Visitor(url)
    asked = visitor.get("/brokers/features")
    assert asked.path.startswith("/sign-in?to=")
    password = secure.security_of("admin")["sasl.password"]
    assert visitor.send(asked.path, "/sign-in", user="admin", password=password).path == "/brokers/features"


def test_a_user_who_was_deleted_signs_in_no_more(secure: SecureBroker, url: str) -> None:
    password = secure.add_user("leaver")
    visitor = signed_in(url, "leaver", password)
    assert visitor.get("/topics").status == 200
    admin = signed_in(url, "admin", secure.security_of("admin")["sasl.password"])
    assert admin.send("/access/users/change?user=leaver", "/access/users/remove", name="leaver").status == 200
    # Kafka ends no connection whose user was deleted; it has no rights that its rules do not give it.
    assert visitor.get("/topics").status == 200, "a list without the topics that it may not see"
    assert visitor.send("/topics/+new", "/topics/%2Bnew", name="by-leaver").status == 403
    assert visitor.send("/topics/+new", "/sign-out").path == "/sign-in"
    again = visitor.send("/sign-in", "/sign-in", user="leaver", password=password)
    assert (again.status, "refuses this user" in again.words) == (403, True)
    with Blocking(secure.bootstrap, security=secure.security) as client:
        assert "by-leaver" not in client.admin.topics.names()


def test_who_has_not_signed_in_sends_no_long_form(secure: SecureBroker, url: str) -> None:
    long = {"text": "x" * limits.CONSOLE_SIGN_IN_BYTES_MAX}
    refused = Visitor(url).post("/sign-in", long)
    assert (refused.status, refused.headers["content-type"]) == (413, "text/html; charset=utf-8")
    assert "the form is longer than the console takes" in refused.words
    visitor = signed_in(url, "admin", secure.security_of("admin")["sasl.password"])
    assert visitor.post("/sign-in", long).status != 413


def test_a_long_form_after_the_end_of_the_session_leads_to_the_sign_in_page(secure: SecureBroker, url: str) -> None:
    visitor = signed_in(url, "admin", secure.security_of("admin")["sasl.password"])
    given = token(visitor, "/topics/+new")
    visitor.post("/sign-out", {"_token": given})
    for size in (limits.CONSOLE_SIGN_IN_BYTES_MAX, limits.CONSOLE_FORM_BYTES_MAX):
        shown = visitor.post("/topics/a/produce", {"_token": given, "value": "x" * size})
        assert (shown.status, shown.path) == (200, "/sign-in"), shown.words


def test_a_form_that_is_too_long_is_refused_on_a_page(secure: SecureBroker, url: str) -> None:
    visitor = signed_in(url, "admin", secure.security_of("admin")["sasl.password"])
    shown = visitor.post("/topics/a/produce", {"value": "x" * limits.CONSOLE_FORM_BYTES_MAX})
    assert (shown.status, "the form is longer than the console takes" in shown.words) == (413, True)
    assert "script-src 'self'" in shown.headers["content-security-policy"]
