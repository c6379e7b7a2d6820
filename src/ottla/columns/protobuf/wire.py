"""Protobuf's wire format: leaf functions of the compiled loop. Nothing is read at or behind an end."""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.loops import Bytes, Longs, compiled, inlined
from ottla.columns.protobuf.ops import (
    ASK_LIBRARY,
    BAD_GROUP,
    BAD_TAG,
    EIGHT,
    FOUR,
    GROUP,
    GROUP_END,
    LONG_VARINT,
    SHORT,
    SIZED,
    VARINT,
)

_TAG_MAX = 2**32 - 1


@inlined
def _read(data: Bytes, at: Any, end: Any, bits_max: Any) -> tuple[Any, Any]:
    """Read a number of at most `bits_max` bits, seven to a byte; return it and the position after it."""
    value = np.int64(0)
    shift = np.int64(0)
    while at < end:
        byte = data[at]
        at += 1
        value |= np.int64(byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift >= bits_max:
            return np.int64(0), LONG_VARINT
    return np.int64(0), SHORT


@inlined
def read_varint(data: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Read a varint of 64 bits; return it and the position after it."""
    return _read(data, at, end, 70)


@inlined
def read_short(data: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Read a tag or a length; return it and the position after it. It has at most 5 bytes, as in the library."""
    return _read(data, at, end, 35)


@inlined
def read_tag(data: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Read the tag of a field; return it and the position after it."""
    tag, at = read_short(data, at, end)
    if at >= 0 and (tag < 8 or tag > _TAG_MAX):
        return np.int64(0), BAD_TAG
    return tag, at


@inlined
def read_size(data: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Read a length that does not exceed the remaining bytes; return it and the position after it."""
    size, at = read_short(data, at, end)
    if at >= 0 and size > end - at:
        return np.int64(0), SHORT
    return size, at


@inlined
def pass_value(data: Bytes, at: Any, end: Any, wire: Any) -> Any:
    """Return the position after a value; for a group, the position after its tag (`pass_group` finds the end of
    groups).
    """
    if wire == VARINT:
        _, at = read_varint(data, at, end)
        return at
    if wire == EIGHT:
        return at + 8 if end - at >= 8 else SHORT
    if wire == FOUR:
        return at + 4 if end - at >= 4 else SHORT
    if wire == SIZED:
        size, at = read_size(data, at, end)
        return at + size if at >= 0 else at
    return at if wire in (GROUP, GROUP_END) else BAD_TAG


@compiled
def pass_group(data: Bytes, at: Any, end: Any, number: Any, groups: Longs, depth: Any) -> tuple[Any, Any]:
    """Find the end of a group, from behind its first tag on; return (its end, the position after its last tag).

    `depth`: how deep groups may be nested here. A negative position is why the group is bad.
    """
    inside = np.int64(0)
    if depth < 1:
        return np.int64(at), np.int64(BAD_GROUP)
    groups[0] = number
    while at < end:
        tag_at = at
        tag, at = read_short(data, at, end)
        if at >= 0 and tag < 8:
            at = ASK_LIBRARY  # some versions of the library skip a field 0 in an unknown group, some do not
        elif at >= 0 and tag > _TAG_MAX:
            at = BAD_TAG
        if at < 0:
            return np.int64(tag_at), np.int64(at)
        if tag & 7 == GROUP:
            inside += 1
            if inside >= depth:
                return np.int64(tag_at), np.int64(BAD_GROUP)
            groups[inside] = tag >> 3
        elif tag & 7 == GROUP_END:
            if groups[inside] != tag >> 3:
                return np.int64(tag_at), np.int64(BAD_GROUP)
            inside -= 1
            if inside < 0:
                return np.int64(tag_at), np.int64(at)
        else:
            at = pass_value(data, at, end, tag & 7)
            if at < 0:
                return np.int64(tag_at), np.int64(at)
    return np.int64(at), np.int64(BAD_GROUP)


@inlined
def pass_field(data: Bytes, at: Any, end: Any, tag: Any, groups: Longs, depth: Any) -> Any:
    """Return the position after a field, from behind its tag on, including groups."""
    wire = tag & 7
    if wire == GROUP:
        _, at = pass_group(data, at, end, tag >> 3, groups, depth)
        return at
    return pass_value(data, at, end, wire) if wire != GROUP_END else np.int64(BAD_GROUP)


@compiled
def find(data: Bytes, at: Any, end: Any, number: Any, wire: Any, groups: Longs, depth: Any) -> tuple[Any, Any]:
    """Find the last field of a number and wire type in a message; return (its value's position or
    -1, why it is bad).
    """
    found = np.int64(-1)
    while at < end:
        tag, at = read_tag(data, at, end)
        if at < 0:
            return found, np.int64(at)
        if tag >> 3 == number and tag & 7 == wire:
            if found >= 0 and wire == SIZED:
                return found, np.int64(ASK_LIBRARY)  # the first one may not be valid text
            found = np.int64(at)
        at = pass_field(data, at, end, tag, groups, depth)
        if at < 0:
            return found, np.int64(at)
    return found, np.int64(0)
