"""Values of any declared message: Hypothesis strategies, and fixed values with every field set.

Only fields that exist in the version are set, and the others keep their defaults: so a message that was encoded and
decoded again equals the one that went in.
"""

import struct
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from hypothesis import strategies as st

from ottla.wire import header, journal
from ottla.wire.api import API_NAMES, request_class, response_class
from ottla.wire.message import Data, Field, Struct, fields
from ottla.wire.types import Fixed, Sized

_RANGES = {"b": 8, "h": 16, "i": 32, "q": 64}
_TEXT = st.one_of(st.text(max_size=5), st.text("ab", min_size=125, max_size=130))  # around the one-byte length limit
_BYTES = st.one_of(st.binary(max_size=5), st.binary(min_size=125, max_size=130))


@cache
def all_messages() -> tuple[type[Struct], ...]:
    """Every request, response, header and journal record there is."""
    found: list[type[Struct]] = [header.RequestHeader, header.ResponseHeader]
    for key in API_NAMES:
        found += [request_class(key), response_class(key)]
    for module in iter_modules(journal.__path__):
        name = f"{journal.__name__}.{module.name}"
        declared = [each for each in vars(import_module(name)).values() if isinstance(each, type)]
        found += [each for each in declared if issubclass(each, Data) and each.__module__ == name]
    return tuple(found)


def versions_of(cls: type[Struct]) -> range:
    return range(cls.versions.low, cls.versions.high + 1)


def values(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Any message of this class in this version."""
    present = [field for field in fields(cls) if version in field.versions]
    return st.fixed_dictionaries({field.name: _field(field, version) for field in present}).map(lambda kw: cls(**kw))


def _field(field: Field, version: int) -> st.SearchStrategy[Any]:
    one = values(field.type, version) if isinstance(field.type, type) else _leaf(field.type)
    several = st.lists(one, max_size=2) if field.is_list else one
    return st.none() | several if version in field.nullable else several


@cache
def _leaf(kind: Fixed | Sized) -> st.SearchStrategy[Any]:
    if isinstance(kind, Sized):
        return _TEXT if kind.kind == "string" else _BYTES
    if kind.code in _RANGES:
        bits = _RANGES[kind.code]
        return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    special = {
        "?": st.booleans(),
        "d": st.floats(allow_nan=False),
        "16s": st.binary(min_size=16, max_size=16),
        "H": st.integers(0, 0xFFFF),
        "I": st.integers(0, 0xFFFFFFFF),
    }
    return special[kind.code]


def filled(cls: type[Struct], version: int) -> Any:
    """One message with every field of the version set to something that is not its default."""
    kw = {}
    for field in fields(cls):
        if version in field.versions:
            one: Any = filled(field.type, version) if isinstance(field.type, type) else _filler(field.type)
            several = [one] if isinstance(field.type, type) else [one, one]
            kw[field.name] = several if field.is_list else one
    return cls(**kw)


def _filler(kind: Fixed | Sized) -> Any:
    if isinstance(kind, Sized):
        return "name" if kind.kind == "string" else b"bytes"
    if kind.code == "16s":
        return bytes(range(16))
    if kind.code in "?d":
        return kind.code == "?" or 1.5
    return 1 + 256 ** (struct.calcsize(kind.code) - 1)
