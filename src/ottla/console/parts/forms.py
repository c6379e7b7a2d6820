"""Forms: each carries the token of its session, and its fields have labels. Fields that are made with `typed` keep what
was typed, and are marked if it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, tag
from ottla.console.parts.typed import TypedForm
from ottla.console.security.gate import TOKEN_FIELD

_PASSWORD = "password"


def form(
    call: PageCall,
    action: str,
    *content: Content,
    submit: str,
    is_dangerous: bool = False,
    class_: str = "form",
) -> Markup:
    """A form that changes something. In read-only mode there is a sentence in its place."""
    if not call.may_change:
        return tag("p", "The console is read-only.", class_="empty")
    return any_form(call, action, *content, submit=submit, is_dangerous=is_dangerous, class_=class_)


def any_form(
    call: PageCall,
    action: str,
    *content: Content,
    submit: str,
    is_dangerous: bool = False,
    class_: str = "form",
    id_: str | None = None,
) -> Markup:
    """A form that changes nothing of the cluster, and is there in read-only mode as well. Fields elsewhere on the page
    may belong to it by its id.
    """
    token = "" if call.session is None else call.session.token
    button = tag("button", submit, type="submit", class_="danger" if is_dangerous else None)
    hidden = tag("input", type="hidden", name=TOKEN_FIELD, value=token)
    return tag(
        "form",
        hidden,
        *content,
        tag("p", button, class_="buttons"),
        method="post",
        action=action,
        class_=class_,
        id_=id_,
    )


def query_form(action: str, *content: Content, submit: str, class_: str = "form") -> Markup:
    """A form that only asks: its fields become the query of a page. With the class `form wide`, fields are beside each
    other where there is room.
    """
    button = tag("p", tag("button", submit, type="submit"), class_="buttons")
    return tag("form", *content, button, method="get", action=action, class_=class_)


def field(
    name: str,
    label: str,
    value: str | int | None = "",
    *,
    hint: Content = None,
    type_: str = "text",
    required: bool = False,
    autocomplete: str = "off",
    options: Iterable[str] = (),
    typed: TypedForm | None = None,
) -> Markup:
    """A line of text, a number, a password; `options` are offered while typing."""
    offered = list(options)
    if typed is not None and type_ != _PASSWORD:
        value = typed.text(name, "" if value is None else str(value))
    listed = f"{name}-options" if offered else None
    entry = tag(
        "input",
        type=type_,
        name=name,
        value=value,
        required=required,
        autocomplete=autocomplete,
        list=listed,
        spellcheck="false",
        **_mark(name, typed),
    )
    choices = tag("datalist", [tag("option", value=each) for each in offered], id_=listed) if offered else None
    return _labelled(label, [entry, choices], hint)


def area(
    name: str,
    label: str,
    value: str = "",
    *,
    hint: Content = None,
    rows: int = 6,
    required: bool = False,
    typed: TypedForm | None = None,
) -> Markup:
    """Several lines of text."""
    if typed is not None:
        value = typed.text(name, value)
    marked = _mark(name, typed)
    # A line end right behind the tag is not part of the text.
    entry = tag("textarea", "\n" + value, name=name, rows=rows, required=required, spellcheck="false", **marked)
    return _labelled(label, entry, hint)


def choice(
    name: str,
    label: str,
    options: Sequence[str | tuple[str, str]],
    value: str = "",
    *,
    hint: Content = None,
    typed: TypedForm | None = None,
) -> Markup:
    """One of several options; an option is its value, or (value, text)."""
    if typed is not None:
        value = typed.text(name, value)
    pairs = [each if isinstance(each, tuple) else (each, each) for each in options]
    entries = [tag("option", text, value=each, selected=each == value) for each, text in pairs]
    return _labelled(label, tag("select", entries, name=name, **_mark(name, typed)), hint)


def check_box(
    name: str,
    label: str,
    *,
    is_checked: bool = False,
    value: str = "on",
    hint: Content = None,
    typed: TypedForm | None = None,
) -> Markup:
    """Yes or no."""
    if typed is not None:
        is_checked = typed.is_checked(name, is_checked)
    entry = tag("input", type="checkbox", name=name, value=value, checked=is_checked, **_mark(name, typed))
    below = tag("small", hint) if hint else None
    return tag("label", entry, tag("span", label), below, class_="check")


def hidden(name: str, value: str | int) -> Markup:
    """A field that the user does not see."""
    return tag("input", type="hidden", name=name, value=value)


def _mark(name: str, typed: TypedForm | None) -> dict[str, str | bool]:
    """The attributes of a field in which something is wrong."""
    return {"aria_invalid": "true", "autofocus": True} if typed is not None and typed.is_wrong(name) else {}


def _labelled(label: str, entry: Content, hint: Content) -> Markup:
    return tag("label", tag("span", label), entry, tag("small", hint) if hint else None)
