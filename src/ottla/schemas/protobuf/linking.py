"""Resolves names in a file: types and extensions of the file itself and of its imports.

Rules: a name that begins with a dot is complete. Any other is looked up from the innermost message outwards, as protoc
does: the first part of a qualified name decides in which scope the rest must be. A name that is not found in this way
is looked up as a whole in every scope, as Confluent's registry does, because registries contain files that rely on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from ottla.schemas.protobuf.elements import (
    EnumType,
    Extend,
    Message,
    ProtoField,
    ProtoFile,
    ProtoService,
    Rpc,
    TextPosition,
)
from ottla.schemas.schema import InvalidSchema

SCALARS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"),
    *("sfixed32", "sfixed64", "bool", "string", "bytes"),
)


class NameKind(Enum):
    PACKAGE = "package"
    MESSAGE = "message"
    ENUM = "enum"
    EXTENSION = "extension"


def join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def walk_messages(file: ProtoFile) -> Iterator[tuple[str, Message]]:
    """Yield all messages with their full names, outer ones first, including groups."""
    grouped = [member.group for extend in file.extends for member in extend.fields if member.group is not None]
    stack = [(file.package or "", message) for message in reversed([*file.messages, *grouped])]
    while stack:
        scope, message = stack.pop()
        name = join(scope, message.name)
        yield name, message
        inner = [*message.nested, *(each.group for each in message.fields if each.group is not None)]
        inner += [each.group for extend in message.extends for each in extend.fields if each.group is not None]
        stack += [(name, each) for each in reversed(inner)]


def names_in(file: ProtoFile) -> dict[str, NameKind]:
    """Return the full names that a file defines."""
    package = file.package or ""
    parts = package.split(".") if package else []
    names = {".".join(parts[: count + 1]): NameKind.PACKAGE for count in range(len(parts))}
    for scope, extends, enums in _scopes(file):
        names |= {join(scope, enum.name): NameKind.ENUM for enum in enums}
        names |= {join(scope, each.name): NameKind.EXTENSION for extend in extends for each in extend.fields}
    names |= {name: NameKind.MESSAGE for name, _ in walk_messages(file)}
    return names


def _scopes(file: ProtoFile) -> Iterator[tuple[str, tuple[Extend, ...], tuple[EnumType, ...]]]:
    yield file.package or "", file.extends, file.enums
    for name, message in walk_messages(file):
        yield name, message.extends, message.enums


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a file may use, and which of its imports were not found (for the error)."""

    known: Mapping[str, NameKind]
    missing: tuple[str, ...] = field(default=())

    def find(self, name: str, scope: str, *kinds: NameKind) -> str | None:
        """Return the full name of `name` as used in the message or package `scope`, or None."""
        if name.startswith("."):
            return name[1:] if self.known.get(name[1:]) in kinds else None
        first = name.split(".", 1)[0]
        scopes = _outwards(scope)
        for outer in scopes:
            found = self.known.get(join(outer, first))
            if first == name and found in kinds:
                return join(outer, name)
            if first != name and found is not None and found is not NameKind.EXTENSION:
                full = join(outer, name)
                if self.known.get(full) in kinds:
                    return full
                break
        return next((full for outer in scopes if self.known.get(full := join(outer, name)) in kinds), None)

    def type_named(self, name: str, scope: str, position: TextPosition) -> str:
        """Return the full name of a type, with a dot in front. Raises InvalidSchema."""
        found = self.find(name, scope, NameKind.MESSAGE, NameKind.ENUM)
        if found is None:
            where = f"line {position.line}, column {position.column}: " if position.line else ""
            hint = f" (imports that are not among the references: {', '.join(self.missing)})" if self.missing else ""
            raise InvalidSchema(f'{where}the type "{name}" is not defined{hint}')
        return "." + found


def _outwards(scope: str) -> list[str]:
    parts = scope.split(".") if scope else []
    return [".".join(parts[:count]) for count in range(len(parts), -1, -1)]


def link(file: ProtoFile, names: Names) -> ProtoFile:
    """Return the file with full names (beginning with a dot) of all types. Raises InvalidSchema."""
    scope = file.package or ""
    return replace(
        file,
        messages=tuple(_link_message(message, scope, names) for message in file.messages),
        extends=tuple(_link_extend(extend, scope, names) for extend in file.extends),
        services=tuple(_link_service(service, scope, names) for service in file.services),
    )


def _link_message(message: Message, outer: str, names: Names) -> Message:
    scope = join(outer, message.name)
    return replace(
        message,
        fields=tuple(_link_field(each, scope, names) for each in message.fields),
        nested=tuple(_link_message(each, scope, names) for each in message.nested),
        extends=tuple(_link_extend(each, scope, names) for each in message.extends),
    )


def _link_field(each: ProtoField, scope: str, names: Names) -> ProtoField:
    if each.group is not None:
        return replace(each, group=_link_message(each.group, scope, names))
    if each.type in SCALARS:
        return each
    return replace(each, type=names.type_named(each.type, scope, each.position))


def _link_extend(extend: Extend, scope: str, names: Names) -> Extend:
    return replace(
        extend,
        extendee=names.type_named(extend.extendee, scope, extend.position),
        fields=tuple(_link_field(each, scope, names) for each in extend.fields),
    )


def _link_service(service: ProtoService, package: str, names: Names) -> ProtoService:
    scope = join(package, service.name)
    return replace(service, rpcs=tuple(_link_rpc(rpc, scope, names) for rpc in service.rpcs))


def _link_rpc(rpc: Rpc, scope: str, names: Names) -> Rpc:
    return replace(
        rpc,
        request=names.type_named(rpc.request, scope, rpc.position),
        response=names.type_named(rpc.response, scope, rpc.position),
    )
