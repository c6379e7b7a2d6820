"""Inline tags of messages and fields, in Confluent's options `confluent.message_meta` and `field_meta`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.schemas.protobuf.elements import Aggregate, ListLiteral, Literal, Message, ProtoFile, ProtoOption, Value


class InlineTags(NamedTuple):
    """A message (`Outer.Inner`) or a field (`Outer.Inner.name`) by its path in the file, and its tags."""

    path: str
    is_field: bool
    tags: tuple[str, ...]


def inline_tags(file: ProtoFile) -> list[InlineTags]:
    return [found for message in file.messages for found in _tagged(message, "")]


def _tagged(message: Message, scope: str) -> Iterator[InlineTags]:
    path = scope + message.name
    if tags := _tags(message.options, "confluent.message_meta"):
        yield InlineTags(path, False, tags)
    # Members of oneofs first, as Confluent has it.
    for each in sorted(message.fields, key=lambda each: each.oneof is None):
        if tags := _tags(each.options, "confluent.field_meta"):
            yield InlineTags(f"{path}.{each.name}", True, tags)
    for nested in message.nested:
        yield from _tagged(nested, path + ".")


def _tags(options: tuple[ProtoOption, ...], name: str) -> tuple[str, ...]:
    found: list[Value] = []
    for option in options:
        first, *rest = option.name
        if not first.is_extension or first.name.removeprefix(".") != name:
            continue
        if [part.name for part in rest] == ["tags"]:
            found.append(option.value)
        elif not rest and isinstance(option.value, Aggregate):
            found += [value for key, value in option.value.entries if key == "tags"]
    single = [each for value in found for each in (value.values if isinstance(value, ListLiteral) else (value,))]
    texts = [each.data.decode("utf-8", "replace") for each in single if isinstance(each, Literal) and each.data]
    return tuple(dict.fromkeys(texts))
