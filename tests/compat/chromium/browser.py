"""A real browser in front of a console: Chromium, steered by playwright, with an eye on everything that goes wrong."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE_MS = 60_000
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# What each page tells about itself: what a person who listens to it, or uses a narrow screen, would stumble over.
_LOOK = """() => {
  const said = (e) => e.closest("label") || e.getAttribute("aria-label") || e.labels?.length;
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  const fields = [...document.querySelectorAll("input:not([type=hidden]), select, textarea")];
  return {
    headings: document.querySelectorAll("h1").length,
    twice: ids.filter((id, at) => ids.indexOf(id) !== at),
    silent: fields.filter((e) => !said(e)).map((e) => e.outerHTML.slice(0, 100)),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    hacked: window.hacked === true,
    violations: window.violations || [],
    links: [...document.querySelectorAll("main a[href], nav a[href]")].map((e) => e.getAttribute("href")),
  };
}"""
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.violatedDirective));
window.alert = () => { window.hacked = true; };
"""


class Tab:
    """One tab: `errors` are what the browser complained about."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script(_WATCH)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("requestfailed", lambda failed: self._note_failure(failed))

    def _note_failure(self, request: Any) -> None:
        # A page that is left ends its live parts and streams.
        if "ERR_ABORTED" not in (request.failure or ""):
            self.errors.append(f"{request.url}: {request.failure}")

    def go(self, path: str) -> dict[str, Any]:
        """Open a page, and return what it tells about itself."""
        answer = self.page.goto(self.url + path, wait_until="load")
        assert answer is not None
        assert answer.status < 500, f"{path}: {answer.status}: {self.words()[:500]}"
        return self.look()

    def look(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate(_LOOK)
        return found

    def words(self) -> str:
        return self.page.inner_text("main")

    def fill(self, action: str, **fields: str) -> None:
        """Fill in the fields of the form for an action, and send it by Enter or its button."""
        form = self.page.locator(f'form[action="{action}"]')
        for name, value in fields.items():
            entry = form.locator(f'[name="{name}"]').first
            kind = entry.evaluate("(e) => e.type || e.tagName")
            if kind == "select-one":
                entry.select_option(value)
            elif kind == "checkbox":
                entry.set_checked(value == "on")
            else:
                entry.fill(value)
        with self.page.expect_navigation(wait_until="load"):
            form.locator("button[type=submit]").first.click()

    def keep(self, name: str) -> None:
        """Write a screenshot to the folder of OTTLA_SCREENSHOTS, if there is one."""
        folder = os.environ.get("OTTLA_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))


def fine(path: str, found: dict[str, Any], tab: Tab, *, narrow: bool = False) -> None:
    """Assert that a page is as all pages should be."""
    assert not found["hacked"], f"{path}: a script of a record ran"
    assert not found["violations"], f"{path}: {found['violations']}"
    assert found["headings"] == 1, f"{path}: {found['headings']} headings"
    assert not found["twice"], f"{path}: {found['twice']}"
    assert not found["silent"], f"{path}: fields without a label: {found['silent']}"
    if narrow:
        assert found["overflow"] <= 0, f"{path}: {found['overflow']} pixels too wide"
    wrong = [each for each in tab.errors if not re.search(r"status of 4\d\d", each)]
    assert not wrong, f"{path}: {wrong}"


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, url: str, *, width: int = 1200, dark: bool = False) -> Iterator[Tab]:
    """A tab of its own, without cookies of others."""
    scheme: Any = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    try:
        yield Tab(context.new_page(), url)
    finally:
        context.close()
