"""Odd requests: well-formed on the wire, with any mixture of names that exist, are missing, double, empty or absurd.

A *hidden* name or id exists, and its twin of the same length does not; `with_absent` turns the one request into the
other. The answers must not tell them apart.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from ottla.model import limits
from ottla.model.ids import NO_ID
from ottla.records.build import build_batch
from ottla.wire.message import Field, Struct, fields
from ottla.wire.types import Fixed, Sized

HIDDEN, ABSENT = "hidden-", "hiddem-"  # side by side, because cursors compare names
TOPIC, GROUP, TRANSACTION, USER = (f"{HIDDEN}{kind}" for kind in ("topic", "group", "transaction", "user"))
ABSENT_ID = bytes(range(100, 116))
MISSING_ID = bytes(range(16))
_ONE_OF_MANY = 20  # one request of so many has very many items

_EXISTING = (TOPIC, TOPIC, GROUP, TRANSACTION, USER)
_ODD = (
    "", "missing", "*", ".", "..", "a/b", "\0", "é" * 120, "x" * 249, "x" * 250, "kafka-cluster", "1", "0", "-1",
    "__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "__ottla_audit",
    "User:ANONYMOUS", f"User:{USER}", f"{HIDDEN}.*", ".*", "(", "consumer", "range", "classic", "Empty", "retention.ms",
    "127.0.0.1", "member",
)  # fmt: skip
_NAMES = st.sampled_from(_EXISTING) | st.sampled_from(_ODD) | st.text(max_size=4)
_NUMBERS = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 16, 32, -1, -2, 100, 10_000])
_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
_WAITING = {"max_wait_ms", "timeout_ms", "session_timeout_ms", "rebalance_timeout_ms", "transaction_timeout_ms"}
_BATCHES = st.sampled_from([b"", b"x", b"\0" * 61, bytes(build_batch([(b"k", b"v")], timestamp=0))]) | st.binary(
    max_size=80
)


def odd_requests(cls: type[Struct], version: int, hidden_id: bytes) -> st.SearchStrategy[Any]:
    """Any request of this class in this version; some have very many items."""
    made = _values(cls, version, hidden_id)
    few_or_many = st.integers(1, _ONE_OF_MANY)
    return st.builds(
        lambda request, at: _enlarged(request, version) if at == _ONE_OF_MANY else request, made, few_or_many
    )


def _values(cls: type[Struct], version: int, hidden_id: bytes) -> st.SearchStrategy[Any]:
    present = [field for field in fields(cls) if version in field.versions]
    made = {field.name: _field(field, version, hidden_id) for field in present}
    return st.fixed_dictionaries(made).map(lambda given: cls(**given))


def _field(field: Field, version: int, hidden_id: bytes) -> st.SearchStrategy[Any]:
    kind = field.type
    one = _values(kind, version, hidden_id) if isinstance(kind, type) else _leaf(kind, field.name, hidden_id)
    several = st.lists(one, max_size=3) if field.is_list else one
    return st.none() | several | several if version in field.nullable else several


def _leaf(kind: Fixed | Sized, name: str, hidden_id: bytes) -> st.SearchStrategy[Any]:
    if isinstance(kind, Sized):
        if kind.kind == "string":
            return _NAMES
        return _BATCHES if kind.kind == "records" else st.binary(max_size=20)
    if kind.code == "16s":
        return st.sampled_from([hidden_id, hidden_id, MISSING_ID, NO_ID])
    if kind.code in _BITS:
        if name in _WAITING:
            return st.sampled_from([0, 1, 5, -1])
        highest = (1 << _BITS[kind.code] - 1) - 1
        return _NUMBERS.map(lambda number: min(number, highest)) | st.integers(-highest - 1, highest)
    if kind.code == "?":
        return st.booleans()
    return st.floats(allow_nan=False) if kind.code == "d" else st.integers(0, 0xFFFF)


def _enlarged(request: Any, version: int) -> Any:
    """The same with more items in one list than are checked at once, each with another name."""
    for field in fields(type(request)):
        found = getattr(request, field.name)
        if field.is_list and found:
            first = found[0]
            if isinstance(first, str):
                found += [f"many-{number}" for number in range(limits.DECISIONS_PER_SLICE)]
            elif isinstance(first, Struct):
                found += [_renamed(first, version, number) for number in range(limits.DECISIONS_PER_SLICE)]
            break
    return request


def _renamed(struct: Struct, version: int, number: int) -> Struct:
    new = copy.copy(struct)
    for field in fields(type(struct)):
        is_text = isinstance(field.type, Sized) and field.type.kind == "string" and not field.is_list
        if is_text and version in field.versions:
            setattr(new, field.name, f"many-{number}")
            break
    return new


def with_absent(value: Any, hidden_id: bytes) -> Any:
    """The same request about what does not exist."""
    if isinstance(value, list):
        return [with_absent(each, hidden_id) for each in value]
    if isinstance(value, str):
        return value.replace(HIDDEN, ABSENT)
    if value == hidden_id:
        return ABSENT_ID
    if isinstance(value, Struct):
        new = copy.copy(value)
        for field in fields(type(value)):
            setattr(new, field.name, with_absent(getattr(value, field.name), hidden_id))
        return new
    return value
