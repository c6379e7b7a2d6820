"""The offset map against a dict, its budget, and what happens at its end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.compaction.offset_map import SLOT_BYTES, OffsetMap


@given(st.lists(st.binary(max_size=4), max_size=400))
@settings(max_examples=50)
def test_holds_the_latest_offset_of_each_key(keys: list[bytes]) -> None:
    offsets = OffsetMap(1 << 20)
    model: dict[bytes, int] = {}
    for offset, key in enumerate(keys):
        offsets.put(key, offset)
        model[key] = offset
    assert offsets.size == len(model)
    for key in keys:
        assert offsets.get(key) == model[key]
    assert offsets.get(b"never put") == -1


def test_grows_within_its_budget() -> None:
    budget_bytes = 100_000
    offsets = OffsetMap(budget_bytes)
    count = 0
    while not offsets.full:
        offsets.put(b"%d" % count, count)
        count += 1
    assert count == offsets.capacity
    slots = len(offsets._offsets)
    assert slots * SLOT_BYTES * 3 // 2 <= budget_bytes, "old and new table fit together while doubling"
    assert all(offsets.get(b"%d" % number) == number for number in range(count))


def test_a_known_key_is_no_new_one_when_full() -> None:
    offsets = OffsetMap(0)
    while not offsets.full:
        offsets.put(b"%d" % offsets.size, 5)
    offsets.put(b"3", 99)
    assert offsets.get(b"3") == 99
    while offsets.size < 63:
        offsets.put(b"more %d" % offsets.size, 1)
    with pytest.raises(OverflowError):
        offsets.put(b"one too many", 1)
    assert offsets.get(b"absent") == -1, "a search still ends"


def test_clear() -> None:
    offsets = OffsetMap(1 << 16)
    offsets.put(b"a", 0)
    offsets.latest_offset = 7
    offsets.clear()
    assert (offsets.size, offsets.latest_offset, offsets.get(b"a")) == (0, -1, -1)


@pytest.mark.parametrize("load_factor", [0, 1, -0.5])
def test_load_factor(load_factor: float) -> None:
    with pytest.raises(ValueError, match="load factor"):
        OffsetMap(1000, load_factor)
