"""What a route answers: a page, a part of a page, a file, a stream of parts, or a way to another page.

An error of the cluster is no answer: a handler lets it through, and `failures.py` makes a page of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TypeAlias

from ottla.console.html import Content, Markup


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page. `title` is its heading; `trail` are the pages above it, as (text, address)."""

    title: str
    content: Content
    trail: tuple[tuple[str, str], ...] = ()
    status: int = 200


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a page, which the script puts in place of an older one."""

    content: Content
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """The way to another page; `done` is said at its top."""

    to: str
    done: str = ""
    # What belongs to this answer as a cookie, by name; an empty value forgets it.
    cookies: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """A file to keep, or one of the console's own (`name` is empty)."""

    content: bytes | AsyncGenerator[bytes, None]
    media_type: str
    name: str = ""
    cache_control: str = "no-store"


@dataclass(frozen=True, slots=True)
class StreamPart:
    """One step of a stream: the content for the element with the id `into`, in its place or behind what it has."""

    into: str
    content: Markup
    append: bool = False


@dataclass(frozen=True, slots=True)
class PartStream:
    """Parts that come one after the other, of a search for example. A client that leaves ends the work."""

    parts: AsyncGenerator[StreamPart, None]


Answer: TypeAlias = Page | Fragment | Redirect | FileAnswer | PartStream
