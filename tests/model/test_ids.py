"""Ids: text and bytes, and what a random id may not be."""

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import METADATA_TOPIC_ID, NO_ID, TopicPartition, random_uuid, uuid_bytes, uuid_text


@given(st.binary(min_size=16, max_size=16))
def test_text_and_bytes_round_trip(raw: bytes) -> None:
    text = uuid_text(raw)
    assert len(text) == 22
    assert uuid_bytes(text) == raw
    assert uuid_bytes(text + "==") == raw


def test_kafkas_reserved_ids() -> None:
    assert uuid_text(NO_ID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 25, "AAAAAAAAAAAAAAAAAAAAA!", "AAAAAAAAAAAAAAAAAAAAA+", "é" * 22])
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="UUID"):
        uuid_bytes(text)


@given(st.integers(0, 2**32))
def test_random_ids_are_version_4_and_safe_on_a_command_line(seed: int) -> None:
    raw = random_uuid(random.Random(seed))
    assert UUID(bytes=raw).version == 4
    assert not uuid_text(raw).startswith("-")
    assert random_uuid(random.Random(seed)) == raw


def test_a_partition_prints_like_its_directory() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"
