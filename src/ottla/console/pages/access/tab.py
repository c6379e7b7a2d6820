"""The frame of the pages of access: their tabs."""

from __future__ import annotations

from ottla.console.answers import Page
from ottla.console.html import Content
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import card, tabs

ACCESS = (("Access", "/access"),)
_TABS = (
    ("What is open", "/access"),
    ("Users", "/access/users"),
    ("Rules", "/access/rules"),
    ("Quotas", "/access/quotas"),
    ("Tenants", "/access/tenants"),
    ("Tokens", "/access/tokens"),
    ("Audit log", "/access/audit"),
)


def of_access(here: str, title: str, *content: Content) -> Page:
    """A page of access; `here` is the address of its tab."""
    return Page(title, [tabs(_TABS, here), *content], () if here == "/access" else ACCESS)


def below_access(here: str, title: str, *content: Content, status: int = 200) -> Page:
    """A page below a tab, such as a form."""
    name = next(text for text, to in _TABS if to == here)
    return Page(title, content, (*ACCESS, (name, here)), status)


def again(here: str, title: str, typed: TypedForm, content: Content) -> Page:
    """The page of a form that was refused: why, and the form with what was typed."""
    return below_access(here, title, typed.said, card(title, content), status=typed.status)
