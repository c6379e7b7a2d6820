"""Small parts of a page: notices, badges, facts, cards, links, and texts that come from users."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Literal, TypeAlias

from ottla.console.html import Content, Markup, markup_of, tag

Mood: TypeAlias = Literal["good", "fair", "bad", "plain"]

# Control characters, and those that change the direction of the text around them.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_KEPT = frozenset("\n\t")


def notice(sentence: Content, mood: Mood = "plain", hint: Content = None) -> Markup:
    """A sentence in a box, with a hint what to do. Both may have names of users in them."""
    said = tag("p", _seen(sentence))
    below = tag("p", _seen(hint), class_="hint") if hint else None
    return tag("div", said, below, class_=f"notice {mood}", role="status")


def badge(text: Content, mood: Mood = "plain") -> Markup:
    """A word that stands out, such as a state."""
    return tag("span", text, class_=f"badge {mood}")


def link(text: Content, to: str, *, class_: str | None = None) -> Markup:
    return tag("a", text, href=to, class_=class_)


def card(title: Content, *content: Content, id_: str | None = None) -> Markup:
    """A part of a page with a heading of its own."""
    return tag("section", tag("h2", title), *content, class_="card", id_=id_)


def cards(*each: Content) -> Markup:
    """Cards beside each other, where there is room."""
    return tag("div", *each, class_="cards")


def facts(pairs: Iterable[tuple[Content, Content]]) -> Markup:
    """Names and values."""
    return tag("dl", [[tag("dt", name), tag("dd", value)] for name, value in pairs], class_="facts")


def figure(name: Content, value: Content, *, mood: Mood = "plain", note: Content = None) -> Markup:
    """One large figure."""
    below = tag("span", note, class_="note") if note else None
    return tag("div", tag("span", value, class_="value"), tag("span", name), below, class_=f"figure {mood}")


def figures(*each: Content) -> Markup:
    return tag("div", *each, class_="figures")


def tabs(named: Iterable[tuple[Content, str]], here: str) -> Markup:
    """The parts of a subject, each on a page of its own; `here` is the address of this one."""
    items = [tag("a", text, href=to, aria_current="page" if to == here else None) for text, to in named]
    return tag("nav", items, class_="tabs", aria_label="Parts")


def code(text: str) -> Markup:
    """Text as it is typed or stored."""
    return tag("code", told(text))


def block(text: str) -> Markup:
    """Several lines as they are."""
    return tag("pre", told(text), tabindex="0")


def told(text: str) -> Markup:
    """Text of users, from records or names: characters that cannot be seen are shown as escapes, and its direction does
    not change that of the text around it.
    """
    return tag("bdi", visible(text))


def visible(text: str) -> str:
    """Text with an escape in place of each character that cannot be seen, except line ends and tabs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if each in _KEPT or unicodedata.category(each) not in _UNSEEN else _escaped(each) for each in text
    )


def _seen(content: Content) -> Content:
    return told(content) if isinstance(content, str) and not isinstance(content, Markup) else content


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def live(path: str, every_s: float, content: Content = None, *, id_: str | None = None) -> Markup:
    """A part that the script renews from a path; `content` is what it shows at first."""
    return tag("div", content, data_live=path, data_every=every_s, id_=id_)


def stream(path: str, content: Content = None) -> Markup:
    """A part that the script fills from a stream of parts, with a button that ends it."""
    end = tag("button", "Stop", type="button", class_="stop", hidden=True)
    return tag("div", markup_of(content), end, data_stream=path)
