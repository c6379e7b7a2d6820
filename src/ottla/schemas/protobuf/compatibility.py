"""Whether records of one Protobuf schema can be read with another: the differences that Confluent's registry knows.

Both files are compared message by message (by name) and field by field (by number); every difference has Confluent's
name and the path where it is, and only some of them break readers (`BREAKING`). A field whose message comes from an
import is compared by the contents of that message, each pair of messages once, without recursion.

Kept as in Confluent's registry: a label that proto3 does not write is not compared; kinds of scalars are those that
share an encoding (int32, int64, uint32, uint64, bool and enums; string and bytes; ...); renaming is no difference that
matters. Unlike there, groups are compared too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.schemas.protobuf.elements import EnumType, Label, Message, ProtoField
from ottla.schemas.protobuf.library import ProtoFiles
from ottla.schemas.protobuf.linking import SCALARS, join, walk_messages
from ottla.schemas.schema import Incompatibility, Reference

# The description of each breaking difference. %s: the newer schema, then the older one (the caller knows which is).
BREAKING = {
    "PACKAGE_CHANGED": "The package at '{path}' in the %s schema does not match the package in the %s schema",
    "MESSAGE_REMOVED": "The %s schema is missing a MESSAGE type at path '{path}' in the %s schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{path}' in the %s schema does not match the %s schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of a SCALAR field at path '{path}' in the %s schema does not match its kind "
    "in the %s schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of a MESSAGE field at path '{path}' in the %s schema does not match its type "
    "in the %s schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label for a NUMERIC field at path '{path}' in the %s schema does not match its "
    "label in the %s schema",
    "REQUIRED_FIELD_ADDED": "A required field  at path '{path}' in the %s schema is missing in the %s schema",
    "REQUIRED_FIELD_REMOVED": "The %s schema is missing a required field at path: '{path}' in the %s schema",
    "ONEOF_FIELD_REMOVED": "The %s schema is missing a oneof field at path '{path}' in the %s schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Multiple fields in the oneof at path '{path}' in the %s schema are outside a "
    "oneof in the %s schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field in the oneof at path '{path}' in the %s schema is outside an existing "
    "oneof in the %s schema",
}

_ENCODINGS = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "enum"), "number"),
    **dict.fromkeys(("sint32", "sint64"), "signed"),
    **dict.fromkeys(("string", "bytes"), "text"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    **{"float": "float", "double": "double"},
}


class ProtoDifference(NamedTuple):
    kind: str
    path: str


def incompatibilities(
    update: ProtoFiles,
    references: Sequence[Reference],
    *,
    original: ProtoFiles,
    original_references: Sequence[Reference],
) -> list[Incompatibility]:
    """Return why `update`, as the reader, cannot read payloads of `original`."""
    found = differences(update, references, original=original, original_references=original_references)
    breaking = dict.fromkeys(each for each in found if each.kind in BREAKING)
    return [Incompatibility(kind, path, BREAKING[kind].format(path=path)) for kind, path in breaking]


def differences(
    update: ProtoFiles,
    references: Sequence[Reference],
    *,
    original: ProtoFiles,
    original_references: Sequence[Reference],
) -> list[ProtoDifference]:
    """Return all differences, breaking or not."""
    comparison = _Comparison(_Types(original, original_references), _Types(update, references))
    return comparison.run(original, update)


class _Type(NamedTuple):
    """A type by its full name: the name without the package, the subject and version of its file, and its element."""

    local: str
    origin: tuple[str, int] | None
    element: Message | EnumType


_HERE = ("", -1)


class _Types:
    """The types that a schema can use."""

    __slots__ = ("_known",)

    def __init__(self, library: ProtoFiles, references: Sequence[Reference]) -> None:
        origins = {each.name: (each.subject, each.version) for each in references}
        self._known: dict[str, _Type] = {}
        for linked in library.files:
            origin = _HERE if linked is library.main else origins.get(linked.path)
            package = linked.file.package or ""
            cut = len(package) + 1 if package else 0
            for name, message in walk_messages(linked.file):
                self._known[name] = _Type(name[cut:], origin, message)
                self._known |= {join(name, each.name): _Type("", origin, each) for each in message.enums}
            self._known |= {join(package, each.name): _Type("", origin, each) for each in linked.file.enums}

    def of(self, name: str) -> _Type:
        return self._known[name.removeprefix(".")]

    def shape(self, each: ProtoField) -> tuple[str, str, str]:
        """Return (scalar, message, map or group; the type, of a map: its values; the type of a map's keys)."""
        if each.group is not None:
            return "group", each.type, ""
        if each.key is not None:
            return "map", each.type, each.key
        kind, name = self.named(each.type)
        if kind == "message":
            element = self.of(name).element
            if isinstance(element, Message) and element.is_map_entry:
                inner = {member.name: member.type for member in element.fields}
                return "map", inner.get("value", ""), inner.get("key", "")
        return kind, name, ""

    def named(self, name: str) -> tuple[str, str]:
        if name in SCALARS:
            return "scalar", name
        return ("scalar", "enum") if isinstance(self.of(name).element, EnumType) else ("message", name)


class _Pair(NamedTuple):
    """Two messages to compare, by their full names; empty for the root of the comparison."""

    original: str = ""
    update: str = ""


@dataclass(slots=True)
class _Comparison:
    originals: _Types
    updates: _Types
    found: list[ProtoDifference] = field(default_factory=list)
    # Fields whose message comes from an import: the pair that contains the field, its path, and the pair of its type.
    uses: list[tuple[_Pair, str, _Pair]] = field(default_factory=list)
    waiting: list[_Pair] = field(default_factory=list)
    broken: set[_Pair] = field(default_factory=set)
    pair: _Pair = field(default=_Pair())
    path: list[str] = field(default_factory=list)

    def run(self, original: ProtoFiles, update: ProtoFiles) -> list[ProtoDifference]:
        before, after = original.main.file, update.main.file
        if before.package != after.package:
            self._add("PACKAGE_CHANGED")
        self._types(before.messages, before.enums, after.messages, after.enums)
        seen = {self.pair}
        while self.waiting:
            self.pair = self.waiting.pop()
            if self.pair not in seen:
                seen.add(self.pair)
                one, two = self.originals.of(self.pair.original), self.updates.of(self.pair.update)
                self.path = one.local.split(".")
                assert isinstance(one.element, Message)
                assert isinstance(two.element, Message)
                self._message(one.element, two.element)
        self._add_broken_uses()
        return self.found

    def _add_broken_uses(self) -> None:
        users: dict[_Pair, list[_Pair]] = {}
        for user, _, used in self.uses:
            users.setdefault(used, []).append(user)
        spreading = sorted(self.broken)
        while spreading:
            for user in users.get(spreading.pop(), ()):
                if user not in self.broken:
                    self.broken.add(user)
                    spreading.append(user)
        self.found += [
            ProtoDifference("FIELD_NAMED_TYPE_CHANGED", path) for _, path, used in self.uses if used in self.broken
        ]

    def _add(self, kind: str, *more: str) -> None:
        self.found.append(ProtoDifference(kind, "#/" + "/".join((*self.path, *more))))
        if kind in BREAKING:
            self.broken.add(self.pair)

    def _types(
        self,
        before: Iterable[Message],
        enums_before: Iterable[EnumType],
        after: Iterable[Message],
        enums_after: Iterable[EnumType],
    ) -> None:
        olds = {each.name: each for each in before if not each.is_map_entry}
        news = {each.name: each for each in after if not each.is_map_entry}
        places = {name: index for index, name in enumerate(news)}
        for index, (name, old) in enumerate(olds.items()):
            if name not in news:
                self._add("MESSAGE_REMOVED", name)
                continue
            self.path.append(name)
            self._message(old, news[name])
            if places[name] != index:
                self._add("MESSAGE_MOVED")
            self.path.pop()
        for name in news:
            if name not in olds:
                self._add("MESSAGE_ADDED", name)
        self._enums({each.name: each for each in enums_before}, {each.name: each for each in enums_after})

    def _enums(self, olds: dict[str, EnumType], news: dict[str, EnumType]) -> None:
        for name in {**olds, **news}:
            if name not in news:
                self._add("ENUM_REMOVED", name)
            elif name not in olds:
                self._add("ENUM_ADDED", name)
            else:
                before = {each.number: each.name for each in olds[name].values}
                after = {each.number: each.name for each in news[name].values}
                for number in sorted({*before, *after}):
                    if number not in after:
                        self._add("ENUM_CONST_REMOVED", name, str(number))
                    elif number not in before:
                        self._add("ENUM_CONST_ADDED", name, str(number))
                    elif before[number] != after[number]:
                        self._add("ENUM_CONST_CHANGED", name, str(number))

    def _message(self, old: Message, new: Message) -> None:
        before = {each.number: each for each in old.fields}
        after = {each.number: each for each in new.fields}
        self._oneofs(old, new, before)
        # A oneof that was removed with all its fields makes no difference to readers.
        kept = {each.oneof for each in old.fields if each.number in after} | {oneof.name for oneof in new.oneofs}
        for number in sorted({*before, *after}):
            if number not in after:
                self._removed(before[number], kept)
            elif number not in before:
                self._added(after[number])
            else:
                self._both(before[number], after[number])
        self._types(old.nested, old.enums, new.nested, new.enums)

    def _oneofs(self, old: Message, new: Message, before: dict[int, ProtoField]) -> None:
        """Compare oneofs: fields that were independent and now exclude each other lose some of the written values."""
        for oneof in new.oneofs:
            members = [before[each.number] for each in new.fields if each.oneof == oneof.name and each.number in before]
            alone = [each for each in members if each.oneof is None]
            origins = {each.oneof for each in members if each.oneof is not None}
            if len(alone) + len(origins) > 1:
                several = len(alone) > 1
                self._add("MULTIPLE_FIELDS_MOVED_TO_ONEOF" if several else "FIELD_MOVED_TO_EXISTING_ONEOF", oneof.name)
        olds, news = {each.name for each in old.oneofs}, {each.name for each in new.oneofs}
        for name in sorted(olds ^ news):
            self._add("ONEOF_REMOVED" if name in olds else "ONEOF_ADDED", name)

    def _removed(self, each: ProtoField, kept: set[str | None]) -> None:
        if each.oneof is None:
            is_required = each.label is Label.REQUIRED
            self._add("REQUIRED_FIELD_REMOVED" if is_required else "FIELD_REMOVED", str(each.number))
        elif each.oneof in kept:
            self._add("ONEOF_FIELD_REMOVED", each.oneof, str(each.number))

    def _added(self, each: ProtoField) -> None:
        if each.oneof is None:
            is_required = each.label is Label.REQUIRED
            self._add("REQUIRED_FIELD_ADDED" if is_required else "FIELD_ADDED", str(each.number))
        else:
            self._add("ONEOF_FIELD_ADDED", each.oneof, str(each.number))

    def _both(self, old: ProtoField, new: ProtoField) -> None:
        self.path += [str(new.number)] if new.oneof is None else [new.oneof, str(new.number)]
        if old.oneof is not None and new.oneof is None:
            self._add("ONEOF_FIELD_MOVED_TO_TOP_LEVEL")
        if old.name != new.name:
            self._add("FIELD_NAME_CHANGED")
        kind, name, key = self.originals.shape(old)
        new_kind, new_name, new_key = self.updates.shape(new)
        if kind != new_kind:
            self._add("FIELD_KIND_CHANGED")
        elif kind == "group":
            assert old.group is not None
            assert new.group is not None
            self._message(old.group, new.group)
        elif kind == "map":
            self._kinds(key, new_key)
            self._kinds(name, new_name)
        elif kind == "scalar":
            self._scalars(name, new_name, old.label, new.label)
        else:
            self._messages(name, new_name)
        del self.path[-1 if new.oneof is None else -2 :]

    def _kinds(self, old: str, new: str) -> None:
        """Compare the types of a map's keys, or of its values."""
        kind, name = self.originals.named(old)
        new_kind, new_name = self.updates.named(new)
        if kind != new_kind:
            self._add("FIELD_KIND_CHANGED")
        elif kind == "scalar":
            self._scalars(name, new_name, None, None)
        else:
            self._messages(name, new_name)

    def _scalars(self, old: str, new: str, old_label: Label | None, new_label: Label | None) -> None:
        if _ENCODINGS[old] != _ENCODINGS[new]:
            self._add("FIELD_SCALAR_KIND_CHANGED")
        elif old_label is not None and new_label is not None and old_label is not new_label:
            is_text = _ENCODINGS[old] == "text"
            self._add("FIELD_STRING_OR_BYTES_LABEL_CHANGED" if is_text else "FIELD_NUMERIC_LABEL_CHANGED")

    def _messages(self, old: str, new: str) -> None:
        before, after = self.originals.of(old), self.updates.of(new)
        if before.local != after.local:
            self._add("FIELD_NAMED_TYPE_CHANGED")
        elif before.origin is None or before.origin != after.origin:
            # If both are in the file itself, they are compared as its messages. If both are of the same version, they
            # are equal.
            pair = _Pair(old.removeprefix("."), new.removeprefix("."))
            self.uses.append((self.pair, "#/" + "/".join(self.path), pair))
            self.waiting.append(pair)
