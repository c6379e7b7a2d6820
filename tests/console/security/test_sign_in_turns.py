"""Signing in: a flood of attempts leaves room for others, attempts are noted, and a new session ends the old one."""

from __future__ import annotations

import asyncio
import http.client
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode, urlsplit

import pytest
from tests.console.consoles import Visitor
from tests.console.signed_in import secured_console, signed_in
from tests.support.waiting import until

from ottla.console.access import Access
from ottla.console.pages import sign_in
from ottla.console.security.gate import COOKIE, TOKEN_FIELD
from ottla.model import limits
from ottla.testing.secure import SecureBroker


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with SecureBroker(tmp_path_factory.mktemp("secure")) as broker:
        broker.add_user("anna", "anna-password")
        yield broker


@pytest.fixture
def url(secure: SecureBroker) -> Iterator[str]:
    with secured_console(secure) as url:
        yield url


def attempt(url: str, user: str, password: str, source: str) -> int:
    """The status of an attempt to sign in from an address of this machine."""
    address = urlsplit(url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60, source_address=(source, 0))
    try:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/sign-in", urlencode({"user": user, "password": password}), headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_attempts_from_one_address_leave_room_for_others(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = sign_in._accepted
    ended = threading.Event()
    attempts = 2 * limits.PASSWORD_CHECKS_AT_ONCE_MAX
    held: list[str] = []

    async def slow_for_attackers(call: sign_in.PageCall, user: str, password: str) -> Access | None:
        if user.startswith("attacker"):
            held.append(user)
            await asyncio.to_thread(ended.wait, 60)
            return None
        return await checked(call, user, password)

    monkeypatch.setattr(sign_in, "_accepted", slow_for_attackers)
    with ThreadPoolExecutor(attempts) as threads:
        flood = [threads.submit(attempt, url, f"attacker-{n}", "x", "127.0.0.1") for n in range(attempts)]
        try:
            until(lambda: len(held), lambda count: count == limits.PASSWORD_CHECKS_PER_HOST_MAX)
            assert attempt(url, "anna", "anna-password", "127.0.0.2") == 303
            assert len(held) == limits.PASSWORD_CHECKS_PER_HOST_MAX, "one address has so many turns at a time"
        finally:
            ended.set()
        assert {each.result() for each in flood} == {403}, "the others have waited for their turn"


def test_the_log_tells_who_an_attempt_claimed_to_be(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.console.action_log")
    claimed = "anna\n\x1b[31m" + "x" * 1_000
    assert attempt(url, claimed, "wrong", "127.0.0.1") == 403
    assert attempt(url, "anna", "anna-password", "127.0.0.1") == 303
    of_actions = [each for each in caplog.records if each.name.startswith("ottla.console.action_log")]
    failed, done = (each.getMessage() for each in of_actions)
    assert failed.startswith("somebody who claims to be 'anna") and failed.endswith("/sign-in failed with status 403")
    assert failed.isprintable() and len(failed) < 2 * limits.CONSOLE_CELL_CHARS
    assert done == "anna, who was not signed in, at 127.0.0.1: /sign-in ended with status 303"


def test_signing_in_again_ends_the_old_session(url: str) -> None:
    visitor = signed_in(url, "anna", "anna-password")
    old = visitor.cookies[COOKIE]
    token = visitor.get("/").text.split(f'name="{TOKEN_FIELD}" value="')[1].partition('"')[0]
    visitor.post("/sign-in", {TOKEN_FIELD: token, "user": "anna", "password": "anna-password"})
    assert visitor.cookies[COOKIE] != old
    assert "Topics" in visitor.get("/topics").words
    before = Visitor(url)
    before.cookies[COOKIE] = old
    assert before.get("/topics").path.startswith("/sign-in")
