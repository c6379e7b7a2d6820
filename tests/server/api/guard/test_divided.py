"""Requests that are divided, ignored in part, or refused by the handler: no name in them passes the guard unchecked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.requests.acl_entries import allow
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.settings.authorizer import STANDARD_AUTHORIZER
from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api.guard.refusal import blank
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

Ask = MetadataRequest.Topic
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
ADMIN, MALLORY = "127.0.0.1", "127.0.0.2"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """Everything is allowed to whoever comes from one address, and no topic to anybody else."""
    with (
        EmbeddedBroker(tmp_path_factory.mktemp("node"), SETTINGS) as running,
        RawConnection(running.bootstrap) as admin,
    ):
        for resource, name in ((AclResourceType.CLUSTER, "kafka-cluster"), (AclResourceType.TOPIC, "*")):
            admin.call(allow(AclOperation.ALL, resource, name, ADMIN), 3)
        topic = CreateTopicsRequest.CreatableTopic(
            name="secret", num_partitions=3, replication_factor=1, assignments=[], configs=[]
        )
        admin.call(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
        yield running


def described(broker: EmbeddedBroker, topics: list[Ask]) -> list[Any]:
    with RawConnection(broker.bootstrap, source=MALLORY) as mallory:
        answer: Any = mallory.call(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 12)
        return list(answer.topics)


def named(*names: str) -> list[Ask]:
    return [Ask(topic_id=NO_ID, name=name) for name in names]


@pytest.mark.parametrize("count", [1, limits.ITEMS_PER_SLICE])
def test_names_beside_ids_are_ignored_however_many_there_are(broker: EmbeddedBroker, count: int) -> None:
    ids = [Ask(topic_id=os.urandom(16), name=None) for _ in range(count)]
    found = described(broker, ids + named("secret", "made-by-mallory"))
    assert len(found) == count
    assert not [each for each in found if each.name or each.partitions]
    with RawConnection(broker.bootstrap) as admin:
        assert "made-by-mallory" not in {each.name for each in admin.call(MetadataRequest(topics=None), 12).topics}  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [1, limits.ITEMS_PER_SLICE])
def test_one_topic_without_name_and_id_refuses_the_whole_request(broker: EmbeddedBroker, count: int) -> None:
    names = named("secret", *(f"other-{number}" for number in range(count)))
    found = described(broker, [*names, Ask(topic_id=NO_ID, name=None)])
    assert {each.error_code for each in found} == {ErrorCode.INVALID_REQUEST}
    assert not [each for each in found if each.partitions]


@pytest.mark.parametrize("sinks", [[], ["!"], ["__consumer_offsets"]])
def test_a_topology_with_an_impossible_sink_is_checked(broker: EmbeddedBroker, sinks: list[str]) -> None:
    topology = StreamsGroupHeartbeatRequest.Topology
    part = blank(topology.Subtopology, 0, {"subtopology_id": "0", "source_topics": ["secret"]})
    part.repartition_sink_topics = sinks
    joining = {
        "group_id": "g",
        "member_id": "member-of-mallory-1",
        "rebalance_timeout_ms": 60_000,
        "process_id": "p",
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "client_tags": [],
        "topology": blank(topology, 0, {"subtopologies": [part]}),
    }
    with RawConnection(broker.bootstrap, source=MALLORY) as mallory:
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        until(lambda: mallory.call(find, 4), lambda answer: not answer.coordinators[0].error_code)  # type: ignore[attr-defined]
        loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        request = blank(StreamsGroupHeartbeatRequest, 0, joining)
        answer: Any = until(lambda: mallory.call(request, 0), lambda each: each.error_code not in loading)  # type: ignore[attr-defined]
    assert answer.error_code == REFUSED


def test_an_empty_key_of_tokens_means_no_tokens(tmp_path: Path) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "delegation.token.secret.key": "",
    }
    with EmbeddedBroker(tmp_path / "data", settings) as running:
        assert running.node is not None
        sasl = running.node.rooms.security.listener("SASL_PLAINTEXT").sasl
        assert sasl is not None and not sasl._maker._credentials.derives


def test_a_topic_with_a_name_and_an_id_is_answered_beside_its_id(broker: EmbeddedBroker) -> None:
    """The refusal of the one must not swallow the other."""
    assert broker.node is not None
    topic_id = broker.node.metadata.state.topics["secret"].id
    doomed = DeleteTopicsRequest.DeleteTopicState
    topics = [doomed(name=None, topic_id=topic_id), doomed(name="other", topic_id=topic_id)]
    with RawConnection(broker.bootstrap, source=MALLORY) as mallory:
        answer: Any = mallory.call(DeleteTopicsRequest(topics=topics, timeout_ms=0), 6)
    told = {(each.name, each.error_code) for each in answer.responses}
    assert told == {(None, REFUSED), ("other", ErrorCode.INVALID_REQUEST)}


def test_a_produce_without_acks_and_without_partitions_is_no_error(broker: EmbeddedBroker) -> None:
    topic = ProduceRequest.TopicProduceData(name="secret", partition_data=[])
    with RawConnection(broker.bootstrap, source=MALLORY) as mallory:
        mallory.send(request_frame(ProduceRequest(acks=0, timeout_ms=0, topic_data=[topic]), 9, 1, "mallory"))
        hello: Any = mallory.call(ApiVersionsRequest(), 0)
        assert hello.error_code == 0


def test_a_produce_of_very_many_partitions_is_answered_beside_a_refused_topic(broker: EmbeddedBroker) -> None:
    data = ProduceRequest.TopicProduceData
    parts = [data.PartitionProduceData(index=index, records=b"") for index in range(5_000)]
    topics = [
        data(name="secret", partition_data=parts[:1]),
        data(name="open", partition_data=parts),
    ]
    with RawConnection(broker.bootstrap, source=ADMIN) as admin:
        admin.call(allow(AclOperation.WRITE, AclResourceType.TOPIC, "open", MALLORY), 3)
    with RawConnection(broker.bootstrap, source=MALLORY) as mallory:
        answer: Any = mallory.call(ProduceRequest(acks=1, timeout_ms=0, topic_data=topics), 9)
    told = {topic.name: [each.error_code for each in topic.partition_responses] for topic in answer.responses}
    assert told["secret"] == [REFUSED] and len(told["open"]) == 5_000 and REFUSED not in told["open"]
