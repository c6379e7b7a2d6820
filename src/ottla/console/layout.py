"""The frame around each page: navigation, who is signed in, light or dark, what was just done."""

from __future__ import annotations

from typing import NamedTuple

from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, tag
from ottla.console.parts.forms import any_form
from ottla.console.parts.words import notice, told, visible
from ottla.console.static_files import address_of


class NavigationEntry(NamedTuple):
    """An entry of the navigation: its text, its path, and the key that follows `g`."""

    text: str
    path: str
    key: str


PLACES = (
    NavigationEntry("Overview", "/", "o"),
    NavigationEntry("Topics", "/topics", "t"),
    NavigationEntry("Groups", "/groups", "g"),
    NavigationEntry("Dead letters", "/letters", "d"),
    NavigationEntry("Transactions", "/transactions", "x"),
    NavigationEntry("Schemas", "/schemas", "s"),
    NavigationEntry("Contracts", "/contracts", "k"),
    NavigationEntry("Pipelines", "/pipelines", "p"),
    NavigationEntry("SQL", "/sql", "q"),
    NavigationEntry("Brokers", "/brokers", "b"),
    NavigationEntry("Requests", "/requests", "r"),
    NavigationEntry("Access", "/access", "a"),
)


def document(page: Page, call: PageCall) -> bytes:
    """The HTML of a whole page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{visible(page.title)} · Ottla"),
        tag("link", rel="stylesheet", href=address_of("console.css")),
        tag("link", rel="icon", href=address_of("icon.svg"), type="image/svg+xml"),
        tag("script", src=address_of("console.js"), defer=True),
    )
    main = tag(
        "main", _trail(page), tag("h1", told(page.title)), _messages(call), page.content, id_="main", tabindex="-1"
    )
    skip = tag("a", "Skip to the content", href="#main", class_="skip")
    body = tag("body", skip, _header(call), _navigation(call), main, _keys())
    whole = tag("html", head, body, lang="en", data_theme=call.theme or None)
    return b"<!doctype html>\n" + encoded(whole)


def encoded(content: Markup) -> bytes:
    """HTML as bytes; halves of surrogate pairs, which UTF-8 does not have, become question marks."""
    return content.encode("utf-8", "replace")


def _header(call: PageCall) -> Markup:
    brand = tag("a", "Ottla", tag("small", told(call.options.bootstrap)), href="/", class_="brand")
    theme = tag("button", "Light or dark", type="button", id_="theme", title="Light or dark")
    return tag("header", brand, tag("div", _mode(call), theme, _user(call), class_="who"))


def _mode(call: PageCall) -> Content:
    return tag("span", "read-only", class_="badge fair") if call.options.read_only else None


def _user(call: PageCall) -> Content:
    if call.session is None or not call.options.signs_in:
        return None
    out = any_form(call, "/sign-out", submit="Sign out", class_="inline")
    return [tag("span", told(call.session.access.user)), out]


def _navigation(call: PageCall) -> Content:
    if call.session is None:
        return None
    here = "/" + call.path.strip("/").partition("/")[0]
    links = [
        tag(
            "a",
            each.text,
            href=each.path,
            aria_current="page" if each.path == here else None,
            data_key=f"g {each.key}",
        )
        for each in PLACES
    ]
    menu = tag("button", "Menu", type="button", id_="menu", aria_expanded="false", aria_controls="places")
    return tag("nav", menu, tag("div", links, id_="places"), class_="places", aria_label="Pages of the console")


def _trail(page: Page) -> Content:
    if not page.trail:
        return None
    links = [tag("a", told(text), href=to) for text, to in page.trail]
    return tag("nav", links, class_="trail", aria_label="Pages above")


def _messages(call: PageCall) -> Content:
    if call.session is None:
        return None
    waiting = list(call.session.messages)
    call.session.messages.clear()
    return [notice(each, "good") for each in waiting]


def _keys() -> Markup:
    listed = [(f"g {each.key}", each.text) for each in PLACES]
    listed += [("/", "filter"), ("j k", "next and previous row"), ("Enter", "open the row"), ("?", "these keys")]
    rows = [tag("tr", tag("td", tag("kbd", key)), tag("td", text)) for key, text in listed]
    close = tag("form", tag("button", "Close", type="submit"), method="dialog")
    return tag("dialog", tag("h2", "Keys"), tag("table", rows), close, id_="keys")
