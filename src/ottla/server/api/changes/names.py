"""What requests name, as APIs declare it for the audit log (`Needs(changes=…)`): what several of them share.

Values of settings, passwords and the secret halves of tokens are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import islice
from typing import Protocol

from ottla.model import limits
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType


class _Topic(Protocol):
    name: str


class _OfTopics(Protocol):
    @property
    def topics(self) -> Sequence[_Topic]: ...


def topics_named(request: _OfTopics) -> Iterator[str]:
    yield from (topic.name for topic in request.topics)


def acl_entry(permission: int, principal: str, operation: int, resource: str, host: str) -> str:
    return f"{word(AclPermission, permission)} {principal} {word(AclOperation, operation)} {resource} from {host}"


def acl_resource(resource: int, name: str | None, pattern: int) -> str:
    return f"{word(AclResourceType, resource)} {word(PatternType, pattern)} {'any name' if name is None else name}"


def word(kind: type[IntEnum], number: int) -> str:
    """Return the name of a code."""
    try:
        return kind(number).name
    except ValueError:
        return str(number)  # of a later release


def shown(names: Iterator[str]) -> str:
    """Return the first names as one text of bounded length; the log escapes it."""
    some = [each[: limits.AUDIT_NAME_CHARACTERS_MAX] for each in islice(names, limits.AUDIT_NAMES_MAX)]
    more = sum(1 for _ in names)
    return "; ".join(some) + (f"; and {more} more" if more else "")
