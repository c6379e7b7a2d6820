"""Administration of several things at once: each has its own outcome, whatever becomes of the others."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.client.scripted import CLOSE, ScriptedBroker, api_versions
from tests.client.test_leaders import Pair
from tests.support.outcomes import codes
from tests.support.waiting import WAIT_S

from ottla import Admin, ApiError, Outcomes, ProducerOptions
from ottla.client.admin.configs import Change, _ask_owners
from ottla.client.admin.topics import ALL_RECORDS, NewTopic
from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.offsets import LATEST, PartitionBounds
from ottla.client.errors import ClientError, ConnectionLost
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.groups.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.topics.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.txns.list_transactions import ListTransactionsRequest, ListTransactionsResponse

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
GOOD, BESIDE, BEYOND, NOWHERE = (TopicPartition(*each) for each in (("t", 0), ("t", 1), ("t", 9), ("nope", 0)))


@pytest.fixture
def client(ottla_broker: EmbeddedBroker) -> Iterator[Blocking]:
    """A topic `t` of two partitions with three records each."""
    with Blocking(ottla_broker.bootstrap, ProducerOptions(linger_ms=0)) as made:
        made.admin.topics.create("t", 2, 1)
        for number in range(6):
            made.post("t", b"v", partition=number % 2)
        made.flush()
        yield made


# --- one good and one bad of each


def test_topics(client: Blocking) -> None:
    topics = client.admin.topics
    made = topics.create_each([NewTopic("a", 1, 1), NewTopic("t", 1, 1), NewTopic("no good", 1, 1)])
    assert made.found.keys() == {"a"} and made.found["a"].partitions == 1
    assert codes(made) == {"t": ErrorCode.TOPIC_ALREADY_EXISTS, "no good": ErrorCode.INVALID_TOPIC_EXCEPTION}
    grown = topics.add_partitions_each({"a": 3, "t": 1, "nope": 2})
    assert grown.found == {"a": None} and codes(grown) == {"t": ErrorCode.INVALID_PARTITIONS, "nope": UNKNOWN}
    described = topics.describe_each(["a", "nope", "t"])
    assert {name: each.partition_count for name, each in described.found.items()} == {"a": 3, "t": 2}
    assert codes(described) == {"nope": UNKNOWN}
    gone = topics.delete_each(["nope", "a"])
    assert gone.found == {"a": None} and codes(gone) == {"nope": UNKNOWN}
    with pytest.raises(ApiError, match=r"nope: .*\(and 1 other failed\)"):
        topics.delete_each(["nope", "t", "neither"]).all()


def test_partitions(client: Blocking) -> None:
    topics = client.admin.topics
    wanted = [GOOD, NOWHERE, BESIDE]
    offsets = topics.offsets_each(dict.fromkeys(wanted, LATEST))
    assert {at: each.offset for at, each in offsets.found.items()} == {GOOD: 3, BESIDE: 3}
    assert codes(offsets) == {NOWHERE: UNKNOWN}
    deleted = topics.delete_records_each({GOOD: 2, BESIDE: 7, BEYOND: 1, NOWHERE: ALL_RECORDS})
    assert deleted.found == {GOOD: 2}
    assert codes(deleted) == {BESIDE: ErrorCode.OFFSET_OUT_OF_RANGE, BEYOND: UNKNOWN, NOWHERE: UNKNOWN}
    with pytest.raises(ApiError, match=r"t-[19]: .* \(and 1 other failed\)"):
        topics.delete_records("t", {0: ALL_RECORDS, 1: 7, 9: 1})
    bounds = topics.bounds_each([GOOD, NOWHERE, BESIDE])
    assert bounds.found == {GOOD: PartitionBounds(3, 3), BESIDE: PartitionBounds(0, 3)} and codes(bounds) == {
        NOWHERE: UNKNOWN
    }
    producers = topics.producers_each([GOOD, BEYOND])
    assert len(producers.found[GOOD]) == 1 and codes(producers) == {BEYOND: UNKNOWN}


def test_configs(client: Blocking) -> None:
    configs, here, absent = client.admin.configs, Resource.topic("t"), Resource.topic("nope")
    node = Resource.broker(client.admin.nodes.describe().brokers[0].node_id)
    changed = configs.alter_each(
        {
            absent: [Change("retention.ms", "1")],
            here: [Change("retention.ms", "60000")],
            node: [Change("log.retention.ms", "soon")],
        }
    )
    assert changed.found == {here: None}
    assert codes(changed) == {absent: UNKNOWN, node: ErrorCode.INVALID_REQUEST}
    described = configs.describe_each([absent, here, node], ["retention.ms", "log.retention.ms"])
    assert [each.value for each in described.found[here]] == ["60000"] and node in described.found
    assert codes(described) == {absent: UNKNOWN}
    with pytest.raises(ApiError, match="topic nope: "):
        configs.describe(absent)


def test_groups(client: Blocking) -> None:
    groups = client.admin.groups
    for name in ("one", "two"):
        groups.set_offsets(name, {GOOD: 1, BESIDE: 2})
    described = groups.describe_each(["one", "nobody"])
    assert described.found["one"].state == "Empty" and codes(described) == {"nobody": ErrorCode.GROUP_ID_NOT_FOUND}
    assert {at: each.records for at, each in groups.lag_each("one").found.items()} == {GOOD: 2, BESIDE: 1}
    stored = groups.set_offsets_each("two", {GOOD: 3, NOWHERE: 1})
    assert stored.found.keys() == {GOOD} and codes(stored) == {NOWHERE: UNKNOWN}
    kept = groups.offsets_each("two", [GOOD, BESIDE])
    assert {at: place and place.offset for at, place in kept.found.items()} == {GOOD: 3, BESIDE: 2}
    dropped = groups.delete_offsets_each("one", [GOOD, NOWHERE])
    assert dropped.found == {GOOD: None} and codes(dropped) == {NOWHERE: UNKNOWN}
    assert groups.offsets("one").keys() == {BESIDE}
    gone = groups.delete_each(["nobody", "one", "two"])
    assert gone.found == {"one": None, "two": None} and codes(gone) == {"nobody": ErrorCode.GROUP_ID_NOT_FOUND}


def test_share_groups(client: Blocking) -> None:
    shares = client.admin.shares
    moved = shares.move_each("queue", {GOOD: 1, NOWHERE: 0})
    assert moved.found == {GOOD: None} and codes(moved) == {NOWHERE: UNKNOWN}
    assert {at: each.start for at, each in shares.places_each("queue").found.items()} == {GOOD: 1}
    dropped = shares.forget_each("queue", ["nope", "t"])
    assert dropped.found == {"t": None} and codes(dropped) == {"nope": UNKNOWN}


def test_transactions(client: Blocking, ottla_broker: EmbeddedBroker) -> None:
    with Blocking(ottla_broker.bootstrap, ProducerOptions(transactional_id="x")) as producer:
        with producer.transaction():
            producer.post("t", b"v")
        transactions = client.admin.transactions
        described = transactions.describe_each(["x", "nobody"])
        assert described.found.keys() == {"x"}
        assert codes(described) == {"nobody": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
        aborted = transactions.abort_each(["nobody", "x"])
        assert aborted.found == {"x": None} and codes(aborted) == {"nobody": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}


# --- a broker that is away


def with_one_away(test: Callable[[Admin, Pair], Awaitable[None]]) -> None:
    """Two brokers in the metadata, the second of which takes no connection."""

    async def main() -> None:
        async with asyncio.timeout(WAIT_S), ScriptedBroker() as first, ScriptedBroker() as second:
            pair = Pair(first, second)
            second.answers[ApiVersionsRequest] = lambda request: CLOSE
            options = ClientOptions(parse_bootstrap(first.bootstrap), retry_backoff_ms=1, api_timeout_ms=200)
            async with Admin(options) as admin:
                await test(admin, pair)

    asyncio.run(main())


def lost(outcomes: Outcomes[Any, Any]) -> set[Any]:
    """The parts that failed, each because a connection was lost: whether it had ever answered does not matter here."""
    assert all(isinstance(error, ConnectionLost) for error in outcomes.failed.values()), outcomes.failed
    return set(outcomes.failed)


def only_the_first(outcomes: Outcomes[int, Any]) -> None:
    assert outcomes.found.keys() == {1} and lost(outcomes) == {2}


def test_lists_of_every_broker() -> None:
    async def test(admin: Admin, pair: Pair) -> None:
        group, transaction = ListGroupsResponse.ListedGroup, ListTransactionsResponse.TransactionState
        groups = [group(group_id="g", protocol_type="", group_state="Empty", group_type="classic")]
        ids = [transaction(transactional_id="x", producer_id=7, transaction_state="Empty")]
        first = pair.brokers[1]
        first.answers |= {
            ListGroupsRequest: lambda request: ListGroupsResponse(error_code=0, groups=groups),
            ListTransactionsRequest: lambda request: ListTransactionsResponse(
                error_code=0, unknown_state_filters=[], transaction_states=ids
            ),
            DescribeLogDirsRequest: lambda request: DescribeLogDirsResponse(results=[]),
            DescribeClusterRequest: lambda request: DescribeClusterResponse(
                error_code=0,
                cluster_id="scripted",
                controller_id=1,
                brokers=[
                    DescribeClusterResponse.Broker(broker_id=each, host="127.0.0.1", port=broker.port, rack=None)
                    for each, broker in pair.brokers.items()
                ],
            ),
        }
        for asked in (admin.groups.all_each, admin.transactions.all_each, admin.nodes.log_dirs_each):
            only_the_first(await asked())
        for plain in (admin.groups.all, admin.transactions.all, admin.nodes.log_dirs):
            with pytest.raises(ClientError):
                await plain()

    with_one_away(test)


def test_groups_whose_coordinator_is_away() -> None:
    """What the others coordinate is described; of a group that is not listed nobody knows whether it exists."""

    async def test(admin: Admin, pair: Pair) -> None:
        first, second = pair.brokers.values()
        group, found = ListGroupsResponse.ListedGroup, FindCoordinatorResponse.Coordinator

        def coordinator(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
            (key,) = request.coordinator_keys
            port = second.port if key == "away" else first.port
            return FindCoordinatorResponse(
                coordinators=[found(key=key, node_id=1, host="127.0.0.1", port=port, error_code=0, error_message=None)]
            )

        names = ["here", "away"]
        first.answers |= {
            ListGroupsRequest: lambda request: ListGroupsResponse(
                error_code=0,
                groups=[
                    group(group_id=each, protocol_type="", group_state="Empty", group_type="classic") for each in names
                ],
            ),
            FindCoordinatorRequest: coordinator,
            DescribeGroupsRequest: lambda request: DescribeGroupsResponse(
                groups=[
                    DescribeGroupsResponse.DescribedGroup(
                        error_code=0,
                        group_id="here",
                        group_state="Empty",
                        protocol_type="",
                        protocol_data="",
                        members=[],
                    )
                ]
            ),
        }
        described = await admin.groups.describe_each(["away", "here", "unlisted"])
        assert described.found.keys() == {"here"}
        assert lost(described) == {"away", "unlisted"}
        second.answers[ApiVersionsRequest] = api_versions()
        second.answers[ListGroupsRequest] = lambda request: ListGroupsResponse(error_code=0, groups=[])
        assert codes(await admin.groups.describe_each(["unlisted"])) == {"unlisted": ErrorCode.GROUP_ID_NOT_FOUND}

    with_one_away(test)


def test_a_request_that_fails_as_a_whole_is_the_outcome_of_each_part() -> None:
    """It used to be raised, also where another broker had applied its part."""

    async def test(admin: Admin, pair: Pair) -> None:
        first = pair.brokers[1]
        asked = (
            CreateTopicsRequest,
            DeleteTopicsRequest,
            CreatePartitionsRequest,
            AlterPartitionReassignmentsRequest,
            IncrementalAlterConfigsRequest,
        )
        await admin.cluster.refresh(["t"])
        first.answers |= dict.fromkeys(asked, lambda request: CLOSE)
        both = {"t", "u"}
        assert lost(await admin.topics.create_each([NewTopic("t"), NewTopic("u")])) == both
        assert lost(await admin.topics.add_partitions_each({"t": 2, "u": 2})) == both
        assert lost(await admin.topics.delete_each(["t", "u"])) == both
        assert "t" in admin.cluster.metadata.topics, "nobody said that it is gone"
        assert lost(await admin.replicas.reassign_each({GOOD: [1], BESIDE: [2]})) == {GOOD, BESIDE}
        with pytest.raises(ConnectionLost, match=r"^t: .*\(and 1 other failed\)$"):
            (await admin.topics.delete_each(["t", "u"])).all()

    with_one_away(test)


def test_configs_of_a_broker_that_answers_beside_a_question_to_any() -> None:
    async def test() -> None:
        async def ask(node_id: int | None, owned: list[Resource]) -> Outcomes[Resource, None]:
            if node_id is None:
                raise ConnectionLost("away")
            return Outcomes(dict.fromkeys(owned))

        outcomes = await _ask_owners([Resource.broker(1), Resource.topic("t")], ask)
        assert outcomes.found == {Resource.broker(1): None} and codes(outcomes) == {Resource.topic("t"): ConnectionLost}
        with pytest.raises(ConnectionLost):
            outcomes.answered()

    asyncio.run(test())
