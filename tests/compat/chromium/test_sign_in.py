"""Signing in to a secured cluster in a real browser: cookies, two tabs, users without rights, read-only mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.compat.chromium.browser import Tab, fine, opened
from tests.console.consoles import running_console
from tests.console.signed_in import secured_console
from tests.support import tools

from ottla.client.blocking.blocking import Blocking
from ottla.console.layout import PLACES
from ottla.console.options import ConsoleOptions
from ottla.console.security.gate import COOKIE
from ottla.testing.secure import SecureBroker

SECRET = "payroll"
WEAK = "weak-password"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    tools.require(tools.missing_browser())
    with SecureBroker(tmp_path_factory.mktemp("secure")) as broker:
        broker.add_user("weak", WEAK)
        with Blocking(broker.bootstrap, security=broker.security) as cluster:
            cluster.admin.topics.create(SECRET, 1)
        yield broker


@pytest.fixture(scope="module")
def served(secure: SecureBroker) -> Iterator[str]:
    with secured_console(secure, registry=True) as url:
        yield url


@pytest.fixture
def tab(browser: Browser, served: str) -> Iterator[Tab]:
    with opened(browser, served) as tab:
        yield tab


def sign_in(tab: Tab, user: str, password: str) -> None:
    tab.page.fill('[name="user"]', user)
    tab.page.fill('[name="password"]', password)
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.press('[name="password"]', "Enter")


def path_of(tab: Tab) -> str:
    return str(tab.page.url).removeprefix(tab.url)


def test_in_and_out_again(tab: Tab, secure: SecureBroker) -> None:
    fine("/topics", tab.go("/topics"), tab)
    assert path_of(tab) == "/sign-in?to=%2Ftopics"
    assert not tab.page.locator("nav.places").count(), "nothing is told to strangers"
    sign_in(tab, "admin", "wrong")
    assert "refuses this user or password" in tab.words()
    assert tab.page.input_value('[name="user"]') == "admin" and tab.page.input_value('[name="password"]') == ""
    fine("refused", tab.look(), tab)
    password = secure.security_of("admin")["sasl.password"]
    sign_in(tab, "admin", password)
    assert path_of(tab) == "/topics" and SECRET in tab.words()
    (cookie,) = [each for each in tab.page.context.cookies() if each["name"] == COOKIE]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["expires"]) == (True, "Strict", -1)
    assert COOKIE not in tab.page.evaluate("document.cookie"), "no script reads it"
    assert password not in tab.page.content()

    second = Tab(tab.page.context.new_page(), tab.url)
    fine("/groups", second.go("/groups"), second)
    assert path_of(second) == "/groups", "the same session"
    second.go("/topics/+new")
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.get_by_role("button", name="Sign out").click()
    assert path_of(tab) == "/sign-in"
    assert not [each for each in tab.page.context.cookies() if each["name"] == COOKIE]
    second.fill("/topics/%2Bnew", name="late")
    assert path_of(second).startswith("/sign-in"), "the other tab is signed out, too"
    tab.page.go_back()
    assert SECRET not in tab.page.content(), "what was shown is not kept by the browser"
    with Blocking(secure.bootstrap, security=secure.security) as cluster:
        assert "late" not in cluster.admin.topics.names()


def test_a_live_part_leads_to_signing_in_when_the_session_is_over(tab: Tab, secure: SecureBroker) -> None:
    tab.go(f"/topics/{SECRET}/live")
    sign_in(tab, "admin", secure.security_of("admin")["sasl.password"])
    tab.page.get_by_text("Waiting for records").wait_for()
    tab.page.context.clear_cookies()
    tab.page.wait_for_url("**/sign-in**")


def test_a_user_without_rights_sees_pages_that_say_so(tab: Tab) -> None:
    tab.go("/sign-in")
    sign_in(tab, "weak", WEAK)
    for path in (*(each.path for each in PLACES), f"/topics/{SECRET}", f"/topics/{SECRET}/records", "/access/users"):
        fine(path, tab.go(path), tab)
        assert tab.words().strip() and "Traceback" not in tab.words()
        if SECRET not in path:
            assert SECRET not in tab.page.content(), path
    tab.go(f"/topics/{SECRET}/records")
    assert tab.page.locator(".notice.bad").count() == 1
    tab.go("/topics/+new")
    tab.fill("/topics/%2Bnew", name="mine")
    assert tab.page.locator(".notice.bad").count() and tab.page.input_value('[name="name"]') == "mine"
    fine("refused", tab.look(), tab)
    tab.keep("refused")


def test_a_read_only_console_has_no_forms_of_changes(browser: Browser, secure: SecureBroker, served: str) -> None:
    with Blocking(secure.bootstrap, security=secure.security) as cluster:
        security = cluster.cluster.options.known_security
        cluster.admin.topics.create("shown", 1)
    options = ConsoleOptions(secure.bootstrap, port=0, security=security, read_only=True)
    with running_console(options) as console, opened(browser, console.url) as tab:
        for path in ("delete", "produce", "partitions", "settings/retention.ms", "delete-records"):
            fine(path, tab.go(f"/topics/shown/{path}"), tab)
            assert not tab.page.locator('form[method="post"]').count(), path
        assert "read-only" in tab.page.inner_text("header")
        for path in ("/topics/+new", "/access/quotas", "/brokers/features", "/brokers/1/settings/log.retention.ms"):
            fine(path, tab.go(path), tab)
            assert not tab.page.locator('form[method="post"]').count(), path
