"""The largest topic that one request may ask for: nobody waits for it to be made."""

from collections.abc import Iterator

import pytest
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of
from tests.support.ports import free_ports

from ottla.model.errors import ErrorCode
from ottla.model.limits import PARTITIONS_PER_REQUEST_MAX
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest

MANY = PARTITIONS_PER_REQUEST_MAX


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    """A controller that is a broker, too: it decides, applies and follows, as others do one of these."""
    client, controller = free_ports(2)
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings) as node:
        yield node


def created(node: MeasuredNode, **counts: int) -> list[tuple[ErrorCode, str | None]]:
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
        )
        for name, count in counts.items()
    ]
    with node.connect() as connection:
        answer = connection.call(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
    return [(ErrorCode(topic.error_code), topic.error_message) for topic in answer.topics]


def test_a_topic_of_very_many_partitions(node: MeasuredNode) -> None:
    names = iter("abcde")

    def create() -> None:
        assert created(node, **{next(names): MANY}) == [(ErrorCode.NONE, None)]

    worst = best_of(lambda: node.cost(create), times=5)
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_a_topic_that_grows_by_very_many(node: MeasuredNode) -> None:
    counts = iter(range(MANY + 1, 6 * MANY, MANY))
    created(node, growing=1)

    def grow() -> None:
        topic = CreatePartitionsRequest.Topic(name="growing", count=next(counts), assignments=None)
        with node.connect() as connection:
            answer = connection.call(CreatePartitionsRequest(topics=[topic], timeout_ms=60_000, validate_only=False), 3)
        assert answer.results[0].error_code == ErrorCode.NONE

    worst = best_of(lambda: node.cost(grow), times=5)
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_deleting_a_topic_of_very_many_partitions(node: MeasuredNode) -> None:
    names = iter("vwxyz")

    def delete(name: str) -> None:
        doomed = DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=bytes(16))
        with node.connect() as connection:
            answer = connection.call(DeleteTopicsRequest(topics=[doomed], timeout_ms=60_000), 6)
        assert answer.responses[0].error_code == ErrorCode.NONE

    def cost() -> Callback:
        name = next(names)
        created(node, **{name: MANY})
        return node.cost(lambda: delete(name))

    worst = best_of(cost, times=5)
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_more_than_kafka_makes_at_once_is_refused(node: MeasuredNode) -> None:
    refused = (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    assert created(node, more=PARTITIONS_PER_REQUEST_MAX + 1) == [refused]
    assert created(node, half=MANY // 2 + 1, other_half=MANY // 2) == [refused, refused]
