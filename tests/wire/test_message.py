"""Declarations: constructors, defaults, equality, facts about classes."""

import copy

import pytest

from ottla.wire.compile import decode, encode
from ottla.wire.header import RequestHeader
from ottla.wire.journal.cluster_metadata import ConfigRecord, PartitionChangeRecord, TopicRecord
from ottla.wire.journal.consumer_group import ConsumerGroupMemberMetadataValue
from ottla.wire.message import Data, Struct, fields, on
from ottla.wire.messages.groups.heartbeat import HeartbeatResponse
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest
from ottla.wire.types import NO_ID, Int32, String, Versions


def fetch_request() -> FetchRequest:
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[])


def test_defaults_are_kafkas() -> None:
    request = fetch_request()
    assert request.max_bytes == 0x7FFFFFFF
    assert request.replica_id == -1
    assert request.cluster_id is None
    assert request.rack_id == ""
    assert request.replica_state == FetchRequest.ReplicaState(replica_id=-1, replica_epoch=-1)
    assert FetchRequest.Topic(partitions=[]).topic_id == NO_ID
    assert MetadataRequest().allow_auto_topic_creation is True
    assert MetadataRequest().topics == []
    assert MetadataResponse(brokers=[], topics=[]).cluster_authorized_operations == -(2**31)
    assert PartitionChangeRecord(partition_id=1, topic_id=NO_ID).leader == -2


def test_a_json_null_default_is_no_default() -> None:
    # Kafka's generator takes only the word "null" for one, and this definition has a bare null.
    value = ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="",
        client_host="",
        subscribed_topic_names=[],
        subscribed_topic_regex=None,
        server_assignor=None,
    )
    made = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=[])
    assert value.classic_member_metadata == made


def test_changeable_defaults_are_not_shared() -> None:
    one, other = fetch_request(), fetch_request()
    one.forgotten_topics_data.append(FetchRequest.ForgottenTopic(partitions=[1]))
    one.replica_state.replica_id = 5
    assert other.forgotten_topics_data == []
    assert other.replica_state.replica_id == -1
    one, other = (decode(FetchRequest, 12, encode(fetch_request(), 12)) for _ in range(2))
    one.replica_state.replica_id = 5
    assert other.replica_state.replica_id == -1


def test_a_field_keeps_its_default_in_versions_without_it() -> None:
    response = HeartbeatResponse(error_code=27, throttle_time_ms=9)
    assert decode(HeartbeatResponse, 0, encode(response, 0)) == HeartbeatResponse(error_code=27)
    assert decode(HeartbeatResponse, 1, encode(response, 1)) == response


def test_required_and_unknown_fields() -> None:
    with pytest.raises(TypeError, match="min_bytes"):
        FetchRequest(max_wait_ms=1, topics=[])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="colour"):
        FetchRequest(max_wait_ms=1, min_bytes=1, topics=[], colour=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        fetch_request().colour = 1  # type: ignore[attr-defined]


def test_equality_and_repr() -> None:
    assert fetch_request() == fetch_request()
    assert fetch_request() != FetchRequest(max_wait_ms=501, min_bytes=1, topics=[])
    assert HeartbeatResponse(error_code=0) != fetch_request()
    assert repr(HeartbeatResponse(error_code=27)) == "HeartbeatResponse(throttle_time_ms=0, error_code=27)"
    data = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=bytes(100))
    assert repr(data).endswith("PartitionProduceData(index=0, records=<100 bytes>)")
    with pytest.raises(TypeError):
        hash(fetch_request())


def test_copies_are_independent() -> None:
    one = fetch_request()
    other = copy.deepcopy(one)
    assert one == other
    other.topics.append(FetchRequest.Topic(topic="t", partitions=[]))
    assert one.topics == []


def test_facts_belong_to_the_class() -> None:
    assert (FetchRequest.key, FetchRequest.name, FetchRequest.versions) == (1, "Fetch", (4, 18))
    assert FetchResponse.flexible == Versions(12, 32767)
    assert InitProducerIdRequest.latest_unstable and not FetchRequest.latest_unstable
    assert (RequestHeader.key, RequestHeader.name) == (-1, "RequestHeader")
    # a field may have the name of a fact
    assert (TopicRecord.name, TopicRecord.key) == ("TopicRecord", 2)
    assert TopicRecord(name="orders", topic_id=NO_ID).name == "orders"
    assert ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None).name == "retention.ms"


def test_versions() -> None:
    assert Versions.of("3+") == (3, 32767)
    assert Versions.of("3") == (3, 3)
    assert Versions.of("3-5") == (3, 5)
    assert 3 in Versions.of("3-5") and 6 not in Versions.of("3-5") and 0 not in Versions.of("none")


def test_an_annotation_that_is_not_understood() -> None:
    class Odd(Data, versions="0"):
        value: "dict[Int32, String]" = on("0+", {})

    with pytest.raises(TypeError, match=r"Odd\.value"):
        fields(Odd)


def test_structs_have_no_room_for_mistakes() -> None:
    class Empty(Struct):
        pass

    assert Empty() == Empty()
    assert fields(Empty) == ()
