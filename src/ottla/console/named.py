"""Addresses of things that may have any name: groups, transactional ids.

A name is one segment of the path, percent-encoded. Names that a browser would take for a step of the path (`.` and
`..`), and the empty name, go into the query instead.
"""

from __future__ import annotations

from ottla.console.call import PageCall
from ottla.console.html import path_to

_STAND_IN = "~"
_NOT_IN_PATHS = frozenset({"", ".", "..", _STAND_IN})


def named_path(place: str, name: str, *rest: str | int, **query: str | int | None) -> str:
    """Return the address of a named thing, or of a page of it: `named_path("groups", group, "reset")`."""
    if name in _NOT_IN_PATHS:
        return path_to(place, _STAND_IN, *rest, **{**query, "named": name})
    return path_to(place, name, *rest, **query)


def name_in(call: PageCall, segment: str) -> str:
    """Return the name in the path of a call."""
    name = call.params[segment]
    return call.query.get("named", name) if name == _STAND_IN else name
