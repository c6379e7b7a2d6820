"""Malformed bytes: always a WireError, soon, and without much memory."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.strategies import all_messages, filled, versions_of

from ottla.wire.compile import WireError, decode, decoder, encode
from ottla.wire.message import Struct, fields
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse

ABSURD = [b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\x7f", b"\xff" * 10]


def places(data: bytes) -> range:
    """Positions all over the data: every one in most messages, some fifty in the longest."""
    return range(0, len(data), 1 + len(data) // 50)


def edges(cls: type[Struct]) -> list[int]:
    """The lowest and the highest version: with most messages, one that is not flexible and one that is."""
    return sorted({cls.versions.low, cls.versions.high})


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_cut_anywhere(cls: type[Struct]) -> None:
    for version in edges(cls):
        data = encode(filled(cls, version), version)
        for size in places(data):
            with pytest.raises(WireError):
                decode(cls, version, data[:size])
        with pytest.raises(WireError, match="1 bytes too many"):
            decode(cls, version, data + b"\0")


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_changed_anywhere(cls: type[Struct]) -> None:
    tracemalloc.start()
    try:
        for version in edges(cls):
            decode_one = decoder(cls, version)
            data = encode(filled(cls, version), version)
            spoilt = [data[:at] + absurd + data[at + len(absurd) :] for at in places(data) for absurd in ABSURD[:2]]
            spoilt += [data[:at] + bytes([value]) + data[at + 1 :] for at in places(data) for value in (0, 127)]
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            for each in spoilt:
                try:
                    _, pos = decode_one(memoryview(each))
                    assert pos <= len(each)
                except WireError:
                    pass
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < 100_000
    finally:
        tracemalloc.stop()


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(cls=st.sampled_from([ProduceRequest, FetchRequest, FetchResponse, MetadataRequest]), data=st.data())
def test_random_bytes(cls: type[Struct], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions_of(cls)))
    view = memoryview(data.draw(st.binary(max_size=60)))
    try:
        _, pos = decoder(cls, version)(view)
        assert pos <= len(view)
    except WireError:
        pass


@pytest.mark.parametrize("absurd", ABSURD)
@pytest.mark.parametrize("version", [0, 12])
def test_a_short_message_cannot_ask_for_much(absurd: bytes, version: int) -> None:
    decoder(MetadataRequest, version)  # writing the codec is not what is measured
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            decode(MetadataRequest, version, absurd + bytes(50))
        _, peak = tracemalloc.get_traced_memory()
        assert peak < 50_000
    finally:
        tracemalloc.stop()


def test_a_count_of_tiny_elements_is_held_against_the_bytes_left() -> None:
    # 100 bytes, and a list that claims to have 99 topics: each takes at least three.
    with pytest.raises(WireError, match="length 99"):
        decode(ProduceRequest, 9, b"\0" + b"\0\1" + b"\0\0\0\1" + bytes([100]) + bytes(99))


def test_nulls_where_there_must_be_none() -> None:
    with pytest.raises(WireError, match="group_id is null"):
        decode(HeartbeatRequest, 4, b"\0" + bytes(20))
    with pytest.raises(WireError, match="group_id: length -1"):
        decode(HeartbeatRequest, 0, b"\xff\xff" + bytes(20))
    with pytest.raises(WireError, match="topics: length -1"):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xff")
    assert decode(MetadataRequest, 1, b"\xff\xff\xff\xff").topics is None
    with pytest.raises(WireError, match="topics: length -2"):
        decode(MetadataRequest, 1, b"\xff\xff\xff\xfe")


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_none_is_refused_where_null_is_not_allowed(cls: type[Struct]) -> None:
    for version in edges(cls):
        for field in fields(cls):
            if version in field.versions and version not in field.nullable:
                message = filled(cls, version)
                setattr(message, field.name, None)
                with pytest.raises(WireError):
                    encode(message, version)


def test_values_that_do_not_fit() -> None:
    good = {"client_software_name": "x", "client_software_version": "1"}
    for wrong in ("x" * 32768, "\ud800", 5):
        with pytest.raises(WireError):
            encode(ApiVersionsRequest(**{**good, "client_software_name": wrong}), 3)  # type: ignore[arg-type]
    longest = ApiVersionsRequest(**{**good, "client_software_name": "x" * 32767})
    assert decode(ApiVersionsRequest, 3, encode(longest, 3)) == longest
    with pytest.raises(WireError):
        encode(FetchRequest(max_wait_ms=2**31, min_bytes=0, topics=[]), 12)
    with pytest.raises(WireError, match="a uuid has 16 bytes, not 3"):
        encode(
            FetchRequest(max_wait_ms=1, min_bytes=0, topics=[FetchRequest.Topic(topic_id=b"abc", partitions=[])]), 13
        )


def test_a_string_longer_than_an_int16_is_refused() -> None:
    data = b"\x81\x80\x02" + b"x" * 32768 + b"\x021\0"
    with pytest.raises(WireError, match="length 32768"):
        decode(ApiVersionsRequest, 3, data)


def test_text_that_is_not_utf8() -> None:
    with pytest.raises(WireError, match="utf-8"):
        decode(ApiVersionsRequest, 3, b"\x03\xff\xfe\x021\0")


def test_versions_that_do_not_exist() -> None:
    with pytest.raises(WireError, match="versions 3 to 13, not 2"):
        decoder(ProduceRequest, 2)
    with pytest.raises(WireError, match="versions 0 to 13, not 14"):
        encode(MetadataResponse(brokers=[], topics=[]), 14)
