"""MessagePack of hostile and friendly authors. The packed bytes are from the specification's table of formats."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.limits import CONSOLE_DEPTH_MAX
from ottla.operations.records.msgpack import NotMsgpack, decode


@pytest.mark.parametrize(
    ("packed", "value"),
    [
        ("7f", 127),
        ("e0", -32),
        ("c0", None),
        ("c2", False),
        ("c3", True),
        ("cc ff", 255),
        ("cd ffff", 65_535),
        ("ce 00010000", 65_536),
        ("cf ffffffffffffffff", 2**64 - 1),
        ("d0 80", -128),
        ("d1 8000", -32_768),
        ("d2 80000000", -(2**31)),
        ("d3 8000000000000000", -(2**63)),
        ("cb 3ff8000000000000", 1.5),
        ("ca 3fc00000", 1.5),
        ("a5 68656c6c6f", "hello"),
        ("d9 02 c3a4", "ä"),
        ("da 0001 61", "a"),
        ("db 00000001 61", "a"),
        ("c4 02 00ff", "00ff"),
        ("93 01 02 a1 78", [1, 2, "x"]),
        ("dc 0001 c0", [None]),
        ("82 a1 61 01 a1 62 c3", {"a": 1, "b": True}),
        ("de 0001 a1 61 90", {"a": []}),
        ("df 00000000", {}),
        ("81 05 a1 61", {"5": "a"}),
        ("d6 ff 00000001", "1970-01-01T00:00:01+00:00"),
        ("d7 ff 0000000000000001", "1970-01-01T00:00:01+00:00"),
        ("c7 0c ff 00000000 ffffffffffffffff", "1969-12-31T23:59:59+00:00"),
        ("d4 05 aa", {"extension": 5, "hex": "aa"}),
    ],
)
def test_each_format(packed: str, value: object) -> None:
    assert decode(bytes.fromhex(packed)) == value


def test_not_a_number() -> None:
    assert math.isnan(decode(bytes.fromhex("cb 7ff8000000000000")))


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        ("", "ends within"),
        ("c1", "no value begins"),
        ("01 02", "follow the value"),
        ("a5 68", "ends within"),
        ("dd ffffffff", "do not fit"),
        ("df ffffffff 00", "do not fit"),
        ("c6 ffffffff", "ends within"),
        ("c9 ffffffff 00", "ends within"),
        ("a1 ff", "not UTF-8"),
        ("91" * (CONSOLE_DEPTH_MAX + 2) + "c0", "nested"),
    ],
)
def test_what_is_none(packed: str, why: str) -> None:
    with pytest.raises(NotMsgpack, match=why):
        decode(bytes.fromhex(packed))


def test_a_time_outside_of_the_calendar_stays_an_extension() -> None:
    assert decode(bytes.fromhex("c7 0c ff 00000000 7fffffffffffffff"))["extension"] == -1


@given(st.binary(max_size=64))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    with suppress(NotMsgpack):
        json.dumps(decode(data))
