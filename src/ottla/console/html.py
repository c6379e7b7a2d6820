"""HTML as values: `tag` makes an element, and whatever text is put into it is escaped.

Rules:
- Only this module makes `Markup`. So text of users (records, names) cannot become an element or an attribute.
- There are no inline scripts and styles: attributes `on…` and `style` are refused, and the pages' policy forbids them.
- Addresses lead into the console itself: they begin with `/`, `?` or `#`, and have no control characters.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias
from urllib.parse import quote, urlencode


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


class UnsafeMarkup(Exception):
    """An element that could run a script, or lead out of the console. It is a defect of the page that makes it."""


Content: TypeAlias = "str | int | float | Markup | Iterable[Content] | None"
Attribute: TypeAlias = str | int | float | bool | None

_VOID = frozenset({"input", "br", "hr", "img", "link", "meta"})
_ADDRESSES = frozenset({"href", "src", "action", "formaction", "data-live", "data-stream"})
NOTHING = Markup()


def tag(name: str, /, *children: Content, **attributes: Attribute) -> Markup:
    """Return an element. Attributes are written as arguments: `class_="row"`, `data_live="/x"`, `required=True`; those
    that are None or False are left out.
    """
    named = "".join(_attribute(each, value) for each, value in attributes.items())
    if name in _VOID:
        if children:
            raise UnsafeMarkup(f"<{name}> has no content")
        return Markup(f"<{name}{named}>")
    return Markup(f"<{name}{named}>{markup_of(children)}</{name}>")


def markup_of(content: Content) -> Markup:
    """Return content as HTML: text is escaped, elements stay, lists are joined, None is nothing."""
    if content is None:
        return NOTHING
    if isinstance(content, Markup):
        return content
    if isinstance(content, str | int | float):
        return Markup(escape(str(content)))
    return Markup("".join(map(markup_of, content)))


def path_to(*segments: str | int, **query: str | int | None) -> str:
    """Return an address inside the console: `path_to("topics", name, page=2)`. A query value of None is left out."""
    path = "/" + "/".join(quote(str(each), safe="") for each in segments)
    given = {name: str(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if name.startswith("on") or name == "style":
        raise UnsafeMarkup(f"{name} would be a script or style in the page")
    if value is True:
        return f" {name}"
    text = str(value)
    if name in _ADDRESSES and not _is_inside(text):
        raise UnsafeMarkup(f"{text!r} leads out of the console")
    return f' {name}="{escape(text)}"'


def _is_inside(address: str) -> bool:
    """Whether an address leads into the console. Browsers drop tabs and line ends, so `//host` may hide in it."""
    has_control = any(each < " " or each == "\x7f" for each in address)
    return address.startswith(("/", "?", "#")) and not address.startswith(("//", "/\\")) and not has_control
