"""What the tests of the data plane say to a node: requests by a few arguments, over a bare connection."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S

from ottla.records.batch import headers
from ottla.records.build import build_batch
from ottla.records.record import records
from ottla.wire.frame import request_frame
from ottla.wire.message import Request
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

FETCH_VERSION = 12  # the last one by name
PRODUCE_VERSION = 9
BROKER, TOPIC = 4, 2  # kinds of configuration resources

_PartitionData = ProduceRequest.TopicProduceData.PartitionProduceData
_Alter = IncrementalAlterConfigsRequest.AlterConfigsResource


def eventually(condition: Callable[[], Any], what: str = "the condition", within_s: float = WAIT_S) -> Any:
    """Waits until `condition` is true and returns what it gave."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} never came true"
        time.sleep(0.01)
    return found


def create(connection: RawConnection, topic: str, partitions: int = 1, **configs: object) -> bytes:
    """Makes a topic (underscores in the names of settings stand for dots); its id."""
    settings = [
        CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(name=name.replace("_", "."), value=str(value))
        for name, value in configs.items()
    ]
    wanted = CreateTopicsRequest.CreatableTopic(
        name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings
    )
    answer: Any = connection.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
    (made,) = answer.topics
    assert made.error_code == 0, made
    topic_id: bytes = made.topic_id
    return topic_id


def delete(connection: RawConnection, topic: str) -> None:
    answer: Any = connection.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5)
    assert answer.responses[0].error_code == 0, answer


def alter(connection: RawConnection, kind: int, name: str, **configs: object) -> None:
    """Sets configurations of a topic or broker."""
    changes = [
        _Alter.AlterableConfig(name=key.replace("_", "."), config_operation=0, value=str(value))
        for key, value in configs.items()
    ]
    resource = _Alter(resource_type=kind, resource_name=name, configs=changes)
    answer: Any = connection.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    assert answer.responses[0].error_code == 0, answer


def produce_request(
    parts: Mapping[tuple[str, int], Any], *, acks: int = -1, timeout_ms: int = 10_000
) -> ProduceRequest:
    """Each value is a batch, or bytes-like things that become the values of one."""
    topics = [
        ProduceRequest.TopicProduceData(
            name=topic,
            partition_data=[
                _PartitionData(
                    index=index, records=build_batch([(None, value) for value in what]) if type(what) is list else what
                )
            ],
        )
        for (topic, index), what in parts.items()
    ]
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)


def produce(
    connection: RawConnection, topic: str, what: Any, *, index: int = 0, acks: int = -1, timeout_ms: int = 10_000
) -> tuple[int, int]:
    """(error code, base offset)."""
    request = produce_request({(topic, index): what}, acks=acks, timeout_ms=timeout_ms)
    answer: Any = connection.call(request, PRODUCE_VERSION)
    found = answer.responses[0].partition_responses[0]
    return found.error_code, found.base_offset


def fetch_request(
    parts: Mapping[tuple[str | bytes, int], int],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 26,
    partition_max_bytes: int = 1 << 20,
    isolation: int = 0,
    session: tuple[int, int] = (0, -1),
    forget: Mapping[str | bytes, list[int]] | None = None,
    current_leader_epoch: int = -1,
) -> FetchRequest:
    """Offsets by (topic name or id, partition); in the order given, neighbours of one topic together."""
    topics: list[Any] = []
    for (topic, index), offset in parts.items():
        if not topics or topic not in (topics[-1].topic, topics[-1].topic_id):
            topics.append(FetchRequest.Topic(partitions=[], **_topic(topic)))
        topics[-1].partitions.append(
            FetchRequest.Topic.Partition(
                partition=index,
                fetch_offset=offset,
                partition_max_bytes=partition_max_bytes,
                current_leader_epoch=current_leader_epoch,
            )
        )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(partitions=indexes, **_topic(topic))
            for topic, indexes in (forget or {}).items()
        ],
    )


def _topic(topic: str | bytes) -> dict[str, Any]:
    return {"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}


def values_of(answer: Any) -> dict[tuple[str | bytes, int], list[bytes | None]]:
    """The values of all records of a fetch answer; fails on errors."""
    found: dict[tuple[str | bytes, int], list[bytes | None]] = {}
    assert answer.error_code == 0, answer
    for topic in answer.responses:
        for part in topic.partitions:
            assert part.error_code == 0, part
            found[topic.topic or topic.topic_id, part.partition_index] = [
                record.value for record in whole(bytes(part.records))
            ]
    return found


def whole(data: bytes) -> list[Any]:
    """The records of the complete batches in `data`; a fetch may end within a batch."""
    view = memoryview(data)
    return [record for at, _ in headers(view) for record in records(view, at)]


class Pipeline:
    """Requests sent without waiting; answers are read later, in order."""

    def __init__(self, bootstrap: str) -> None:
        self.connection = RawConnection(bootstrap)
        self._sent: list[tuple[int, int, int]] = []
        self._next_id = 1000

    def send(self, request: Request, version: int, *, answered: bool = True) -> None:
        if answered:
            self._sent.append((type(request).key, version, self._next_id))
        self.connection.send(request_frame(request, version, self._next_id, "pipe"))
        self._next_id += 1

    def answer(self) -> Any:
        """The next answer; its correlation id must be that of the oldest request."""
        key, version, correlation_id = self._sent.pop(0)
        return self.connection.decode(key, version, self.connection.receive(), correlation_id)

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
