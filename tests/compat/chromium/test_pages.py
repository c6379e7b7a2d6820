"""Every page in a real browser, on a cluster of 10,000 topics and 5,000 groups whose names and records are hostile."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser
from tests.compat.chromium.browser import fine, opened
from tests.compat.chromium.crowd import GROUPS, HOSTILE_GROUPS, RECORDS, SCRIPT, SUBJECT, TOPICS

from ottla.console import pages
from ottla.console.layout import PLACES
from ottla.console.routing import ROUTES

EACH_MAX = 2  # pages of one route that are looked at
# Parts of pages, and files.
_PART = re.compile(r"/(run|part|now|flow|health|text|table|export|download|key|value|deliveries)$")
_WANTED = ("hostile", SCRIPT[:8])


def _route_of(path: str) -> str | None:
    found = ROUTES.find("GET", urlsplit(path).path)
    return None if found is None else found[0].pattern


def _interest(path: str) -> int:
    """Pages of hostile things first."""
    return -sum(each in unquote(path) for each in _WANTED)


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (400, True)])
def test_every_page_that_links_lead_to(browser: Browser, url: str, width: int, dark: bool) -> None:
    pages.load()
    seen: set[str] = set()
    visits: Counter[str] = Counter()
    with opened(browser, url, width=width, dark=dark) as tab:
        waiting = [each.path for each in PLACES]
        waiting += [
            "/groups/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
            f"/topics/{RECORDS}",
            f"/letters/{RECORDS}",
            f"/schemas/{SUBJECT}",
            *_UNLINKED,
        ]
        while waiting:
            waiting.sort(key=_interest)
            path = waiting.pop(0)
            route = _route_of(path)
            if path in seen or route is None or visits[route] >= EACH_MAX or route.startswith("/static"):
                continue
            if _PART.search(urlsplit(path).path):
                continue
            seen.add(path)
            visits[route] += 1
            found = tab.go(path)
            fine(path, found, tab, narrow=width < 500)
            if dark:
                assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(246, 247, 249)"
            base = urlsplit(path).path
            waiting += [to if to.startswith("/") else base + to for to in found["links"] if not to.startswith("#")]
    shown = {each.pattern for each in ROUTES if each.method == "GET"}
    parts = {each for each in shown if _PART.search(each) or each.startswith("/static")}
    missed = shown - parts - set(visits) - _NOT_LINKED
    assert not missed, f"no link led to {sorted(missed)}"


# Pages that only other clusters lead to: the only voter stays.
_UNLINKED = ("/brokers/quorum/1/add", "/brokers/quorum/1/remove")
# Pages of what this cluster has not: transactions, tokens, tenants, users, brokers that left.
_NOT_LINKED = {
    "/sign-in",
    "/access/explain",
    "/brokers/leaders",
    "/contracts/-/choose",
    "/contracts/{topic}",
    "/pipelines/{name}",
    "/pipelines/{name}/restart",
    "/pipelines/{name}/stop",
    "/brokers/moves/cancel",
    "/access/rules/remove",
    "/access/tenants/{tenant}",
    "/access/tenants/{tenant}/delete",
    "/access/users/change",
    "/transactions/{id}",
    "/transactions/{id}/abort",
    "/transactions/in/{topic}/{partition}/{offset}",
    "/letters/{topic}/redrive",
    "/letters/{topic}/{partition}/{offset}",
    "/letters/{topic}/{partition}/{offset}/edit",
    "/groups/{group}/forget",
    "/groups/{group}/reset/preview",
    "/topics/{topic}/records/{partition}/{offset}/{what}",
}


def test_lists_of_thousands_are_small_pages(browser: Browser, url: str) -> None:
    with opened(browser, url) as tab:
        for path, count in (("/topics", TOPICS), ("/groups", GROUPS)):
            tab.go(path)
            assert re.search(rf"{count // 1000},\d\d\d", tab.words())
            assert tab.page.locator("tbody tr").count() <= 100
        tab.keep("topics")
        tab.go("/topics?q=orders.09999")
        assert "orders.09999" in tab.words()


@pytest.mark.parametrize("group", HOSTILE_GROUPS)
def test_groups_with_hostile_names_are_found_and_opened(browser: Browser, url: str, group: str) -> None:
    with opened(browser, url) as tab:
        tab.go("/groups")
        tab.page.fill("input[type=search]", group)
        with tab.page.expect_navigation(wait_until="load"):
            tab.page.keyboard.press("Enter")
        links = tab.page.locator("tbody a")
        at = next(index for index in range(links.count()) if _shows(links.nth(index).inner_text(), group))
        with tab.page.expect_navigation(wait_until="load"):
            links.nth(at).click()
        fine(group, tab.look(), tab)
        assert "there is no" not in tab.words()


def _shows(text: str, name: str) -> bool:
    return text.strip() == name or (not name.isprintable() and text.strip().startswith(name[:3]))


def test_the_keyboard_alone(browser: Browser, url: str) -> None:
    with opened(browser, url) as tab:
        tab.go("/")
        tab.page.keyboard.press("Tab")
        assert tab.page.evaluate("document.activeElement.className") == "skip"
        tab.page.keyboard.press("Enter")
        for each in PLACES:
            with tab.page.expect_navigation(wait_until="load"):
                tab.page.keyboard.press("g")
                tab.page.keyboard.press(each.key)
            assert urlsplit(tab.page.url).path == each.path
            tab.page.evaluate("document.activeElement.blur()")
        tab.go("/topics")
        tab.page.keyboard.press("/")
        tab.page.keyboard.type(RECORDS)
        with tab.page.expect_navigation(wait_until="load"):
            tab.page.keyboard.press("Enter")
        tab.page.evaluate("document.activeElement.blur()")
        tab.page.keyboard.press("j")
        with tab.page.expect_navigation(wait_until="load"):
            tab.page.keyboard.press("Enter")
        assert urlsplit(tab.page.url).path.startswith(f"/topics/{RECORDS}")
        tab.page.keyboard.press("?")
        assert tab.page.locator("#keys").is_visible()
        tab.page.keyboard.press("Escape")
        assert not tab.errors


def test_light_and_dark_are_kept_and_can_be_read(browser: Browser, url: str) -> None:
    contrast = """() => {
      const style = getComputedStyle(document.documentElement);
      const rgb = (name) => {
        const probe = document.createElement("canvas").getContext("2d");
        probe.fillStyle = style.getPropertyValue(name).trim();
        const hex = probe.fillStyle;
        return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
      };
      const light = (name) => {
        const [r, g, b] = rgb(name).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const pairs = [["--ink", "--paper"], ["--ink", "--ground"], ["--dim", "--paper"], ["--dim", "--ground"],
        ["--accent", "--paper"], ["--accent-ink", "--accent"], ["--good", "--good-ground"],
        ["--fair", "--fair-ground"], ["--bad", "--bad-ground"]];
      return pairs.map(([a, b]) => {
        const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
        return [a, b, (high + 0.05) / (low + 0.05)];
      });
    }"""
    with opened(browser, url) as tab:
        tab.go("/")
        for _ in range(2):
            for ink, ground, ratio in tab.page.evaluate(contrast):
                assert ratio >= 4.5, (tab.page.evaluate("document.documentElement.dataset.theme"), ink, ground, ratio)
            tab.page.click("#theme")
        tab.page.click("#theme")
        theme = tab.page.evaluate("document.documentElement.dataset.theme")
        tab.go("/topics")
        assert tab.page.evaluate("document.documentElement.dataset.theme") == theme
