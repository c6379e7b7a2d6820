"""Links that choose one value of a field, such as a state, with how many rows have it."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.console.call import PageCall
from ottla.console.html import Markup, tag
from ottla.console.parts.words import link, told


def choices(call: PageCall, name: str, counts: Mapping[str, int]) -> Markup:
    """A line of links; `name` is the word in the query, and `counts` has the values."""
    here = call.query.get(name)
    each = [
        _choice(f"{value or 'unknown'} {count:,}", call.here(**{name: value, "page": None}), is_here=here == value)
        for value, count in sorted(counts.items())
    ]
    everything = _choice("all", call.here(**{name: None, "page": None}), is_here=here is None)
    return tag("p", tag("span", f"{name.capitalize()}: ", class_="note"), everything, each, class_="choices")


def _choice(text: str, to: str, *, is_here: bool) -> Markup:
    return tag("b", told(text), class_="badge good") if is_here else link(told(text), to, class_="badge")
