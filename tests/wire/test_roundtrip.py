"""What is encoded and decoded again is what it was, for every message and version."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.wire.strategies import all_messages, filled, values, versions_of

from ottla.wire.compile import decode, decoder, encode
from ottla.wire.message import Struct, fields
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.metadata import MetadataResponse

BUSY = [ProduceRequest, FetchRequest, FetchResponse, MetadataResponse]


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_any_value_survives_in_every_version(cls: type[Struct]) -> None:
    versions = versions_of(cls)

    @settings(
        max_examples=5,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*(values(cls, version) for version in versions)))
    def survives(messages: tuple[Any, ...]) -> None:
        for version, message in zip(versions, messages, strict=True):
            assert decode(cls, version, encode(message, version)) == message

    survives()


@pytest.mark.parametrize("cls", BUSY)
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_busy_messages_survive(cls: type[Struct], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions_of(cls)))
    message = data.draw(values(cls, version))
    assert decode(cls, version, encode(message, version)) == message


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_every_field_is_on_the_wire(cls: type[Struct]) -> None:
    for version in versions_of(cls):
        message = filled(cls, version)
        data = encode(message, version)
        assert decode(cls, version, data) == message
        for field in fields(cls):
            if version in field.versions and field.default != getattr(message, field.name):
                changed = filled(cls, version)
                other = [] if field.is_list else None
                if field.is_list or version in field.nullable:
                    setattr(changed, field.name, other)
                    assert encode(changed, version) != data, f"{field.name} v{version}"


def test_decoding_starts_and_ends_where_told() -> None:
    message = filled(FetchRequest, 17)
    data = encode(message, 17)
    view = memoryview(b"before" + data + b"after")
    assert decoder(FetchRequest, 17)(view, 6) == (message, 6 + len(data))


def test_long_lists_and_long_lengths() -> None:
    partition = MetadataResponse.Topic.Partition
    for count in (0, 16, 17, 126, 127, 128, 20_000):
        message = partition(
            error_code=0,
            partition_index=1,
            leader_id=1,
            replica_nodes=list(range(count)),
            isr_nodes=list(range(count)),
        )
        topics = [MetadataResponse.Topic(error_code=0, name="n" * (count % 32768), partitions=[message] * 3)]
        for version in (0, 12):
            answer = MetadataResponse(brokers=[], topics=topics)
            again = decode(MetadataResponse, version, encode(answer, version))
            assert again.topics[0].name == "n" * count
            assert again.topics[0].partitions == [message] * 3
