"""For any request the ones with very many elements: a crowd in each of its lists.

Made from the declarations, so an API that is new has its crowds as soon as it is served. What the elements say follows
the names of their fields: partitions that exist, a group, a transactional id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.model.ids import NO_ID
from ottla.wire.message import Field, Request, Struct, fields
from ottla.wire.types import Fixed

TOPIC = "big"
GROUP = "crowd"


class Crowd:
    """`count` elements in one list of a request, which `path` leads to."""

    def __init__(
        self, request: type[Request], version: int, path: tuple[str, ...], count: int, topic_id: bytes
    ) -> None:
        self.version = version
        self.topic_id = topic_id
        self.path = path
        self.count = count
        self.request: Any = self._struct(request, path, 0)

    def _struct(self, cls: type[Struct], path: tuple[str, ...], number: int) -> Any:
        values = {}
        for field in fields(cls):
            if self.version not in field.versions:
                continue
            if path and field.name == path[0]:
                values[field.name] = self._crowd(field, path[1:])
            elif field.is_list:
                values[field.name] = []
            elif self.version in field.nullable and isinstance(field.type, type):
                values[field.name] = None
            elif isinstance(field.type, type):
                values[field.name] = self._struct(field.type, (), number)
            else:
                values[field.name] = self._leaf(field, number)
        return cls(**values)

    def _crowd(self, field: Field, rest: tuple[str, ...]) -> Any:
        if not field.is_list:
            assert isinstance(field.type, type)
            return self._struct(field.type, rest, 0)
        count = 1 if rest else self.count
        if isinstance(field.type, type):
            return [self._struct(field.type, rest, number) for number in range(count)]
        return [self._leaf(field, number) for number in range(count)]

    def _leaf(self, field: Field, number: int) -> Any:
        name = field.name
        if isinstance(field.type, Fixed):
            if field.type.code == "16s":
                return self.topic_id if "topic" in name else NO_ID
            if field.type.code == "?":
                return name == "validate_only"  # what is made stays, and would be in the way of the others
            if ("partition" in name and not name.startswith("num")) or name in ("index", "partitions"):
                return number
            if name in ("resource_type", "type"):
                return 2
            return field.default if isinstance(field.default, int) and not field.is_list else 1
        if field.type.kind != "string":
            return b"x"
        if "group" in name and "instance" not in name:
            return f"{GROUP}-{number}" if field.is_list else GROUP
        if "topic" in name or name == "name":
            return TOPIC if len(self.path) > 1 else f"{TOPIC}-{number}"
        return f"{name}-{number}"


def paths(cls: type[Struct], version: int) -> Iterator[tuple[str, ...]]:
    """The ways to all lists of a message."""
    for field in fields(cls):
        if version in field.versions:
            if field.is_list:
                yield (field.name,)
            if isinstance(field.type, type):
                for rest in paths(field.type, version):
                    yield (field.name, *rest)
