"""Codecs that work in steps do the same as those that do it all at once; what strangers send is counted."""

from collections.abc import Generator
from typing import Any

import pytest
from tests.wire.strategies import all_messages, filled, versions_of

from ottla.model import limits
from ottla.wire.compile import Crowded, WireError, bounded_decoder, decoder, encode, step_decoder, step_encoder
from ottla.wire.message import Struct
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse


def finish(steps: Generator[None, None, Any]) -> tuple[Any, int]:
    """The result, and how many steps it took."""
    count = 0
    while True:
        count += 1
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_steps_lead_to_the_same(cls: type[Struct]) -> None:
    for version in {versions_of(cls)[0], versions_of(cls)[-1]}:
        message = filled(cls, version)
        data = encode(message, version)
        view = memoryview(data)
        assert finish(step_decoder(cls, version)(view))[0] == decoder(cls, version)(view)
        assert bounded_decoder(cls, version)(view) == decoder(cls, version)(view)
        out = bytearray()
        finish(step_encoder(cls, version)(message, out, []))
        assert out == data


def names(count: int) -> bytes:
    return encode(MetadataRequest(topics=[MetadataRequest.Topic(name="t") for _ in range(count)]), 9)


def test_many_elements_take_steps() -> None:
    data = memoryview(names(3 * limits.ELEMENTS_PER_STEP))
    with pytest.raises(Crowded):
        bounded_decoder(MetadataRequest, 9)(data)
    (message, _), steps = finish(step_decoder(MetadataRequest, 9)(data))
    assert len(message.topics) == 3 * limits.ELEMENTS_PER_STEP
    assert steps == 4


def test_elements_in_elements_count() -> None:
    ask = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=0)
    topics = [ListOffsetsRequest.Topic(name="t", partitions=[ask] * 100) for _ in range(100)]
    data = encode(ListOffsetsRequest(replica_id=-1, topics=topics), 9)
    with pytest.raises(Crowded):
        bounded_decoder(ListOffsetsRequest, 9)(memoryview(data))


def test_too_many_elements_are_refused() -> None:
    """A few megabytes must not become gigabytes of objects."""
    data = memoryview(names(limits.REQUEST_ELEMENTS_MAX + 1))
    steps = step_decoder(MetadataRequest, 9)(data)
    with pytest.raises(WireError, match="elements"):
        finish(steps)


def test_a_large_answer_takes_steps() -> None:
    partition = MetadataResponse.Topic.Partition(
        error_code=0, partition_index=0, leader_id=0, replica_nodes=[], isr_nodes=[], offline_replicas=[]
    )
    topic = MetadataResponse.Topic(error_code=0, name="t", partitions=[partition] * (2 * limits.ELEMENTS_PER_STEP))
    out = bytearray()
    _, steps = finish(step_encoder(MetadataResponse, 9)(MetadataResponse(brokers=[], topics=[topic]), out, []))
    assert steps == 3
    assert out == encode(MetadataResponse(brokers=[], topics=[topic]), 9)
