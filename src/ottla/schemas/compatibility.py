"""Whether a new version of a schema is compatible with earlier ones: the seven levels, and Confluent's messages.

BACKWARD: the new version reads payloads of the last one. FORWARD: the last one reads payloads of the new one. FULL:
both. The transitive levels check all versions instead of the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial

from ottla.model.limits import OLD_SCHEMA_SHOWN_CHARS_MAX
from ottla.schemas.schema import Incompatibility, Parsed


class Level(StrEnum):
    """The compatibility level of a subject."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        return self.value.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """Whether the new schema has to read payloads of older ones."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        """Whether older schemas have to read payloads of the new one."""
        return self.value.startswith(("FORWARD", "FULL"))


# An older version: its number, and a function that parses it when it is needed.
Previous = tuple[int, Callable[[], Parsed]]


def check(new: Parsed, previous: Sequence[tuple[int, Parsed]], level: Level) -> list[str]:
    """Return why `new` may not follow `previous` (oldest first), in Confluent's words; empty if it may."""
    return check_lazily(new, [(version, partial(_itself, old)) for version, old in previous], level)


def _itself(parsed: Parsed) -> Parsed:
    return parsed


def check_lazily(new: Parsed, previous: Sequence[Previous], level: Level) -> list[str]:
    """Check as `check` does, but parse older versions only when needed: the newest first, until one is incompatible."""
    if level is Level.NONE:
        return []
    for version, parse in reversed(previous if level.is_transitive else previous[-1:]):
        if messages := _between(new, version, parse(), level):
            return messages
    return []


def _between(new: Parsed, version: int, old: Parsed, level: Level) -> list[str]:
    if type(new) is not type(old):
        return ["Incompatible because of different schema type"]
    messages = []
    if level.is_read_by_old:
        messages += _sentences(old.incompatibilities(new), "old", "new")
        if messages and not level.reads_old:
            messages += _about(version, old)
    if level.reads_old:
        unreadable = _sentences(new.incompatibilities(old), "new", "old")
        messages += unreadable + _about(version, old) if unreadable else []
    return messages


def _sentences(found: Iterable[Incompatibility], reader: str, writer: str) -> list[str]:
    """Return the messages. A type gives the whole message or only a description; `%s` are the two sides, the reader
    first.
    """
    return [_message(each).replace("%s", reader, 1).replace("%s", writer, 1) for each in found]


def _message(it: Incompatibility) -> str:
    if not it.kind or it.message.startswith("{"):
        return it.message
    return f'{{errorType:"{it.kind}", description:"{it.message}"}}'


def _about(version: int, old: Parsed) -> list[str]:
    text = old.canonical
    shown = f"'{text}'"
    if len(text) > OLD_SCHEMA_SHOWN_CHARS_MAX:
        shown = f"<truncated> '{text[:OLD_SCHEMA_SHOWN_CHARS_MAX]}...'"
    return [f"{{oldSchemaVersion: {version}}}", f"{{oldSchema: {shown}}}"]
