"""The admin client against three nodes, ours and a real Kafka's: moves, elections, quorum, features, brokers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest
from tests.client.nodes import KINDS, run, three_nodes
from tests.support.outcomes import codes
from tests.support.processes.clusters import ProcessCluster

from ottla import Admin, ApiError, Outcomes, Producer, ProducerOptions
from ottla.client.admin.nodes import Upgrade
from ottla.client.admin.quotas import ANY, DEFAULT, QuotaEntity
from ottla.client.admin.topics import NewTopic
from ottla.client.admin.users import ScramInfo, ScramPassword
from ottla.client.admin.voters import VoterEndpoint
from ottla.client.metadata import PartitionInfo
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource, ResourceType
from ottla.security.sasl.scram.credentials import ScramMechanism

PROPERTIES = {"min.insync.replicas": "1"}
T = TypeVar("T")


@pytest.fixture(scope="module", params=KINDS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    yield from three_nodes(request, tmp_path_factory, PROPERTIES)


async def eventually(look: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
    while True:
        found = await look()
        if holds(found):
            return found
        await asyncio.sleep(0.05)


async def partition(admin: Admin, at: TopicPartition) -> PartitionInfo:
    found = (await admin.topics.describe(at.topic)).partition(at.partition)
    assert found is not None
    return found


async def placed(admin: Admin, name: str, *replicas: list[int]) -> list[TopicPartition]:
    """A topic with these replicas, known to whoever answers first."""
    await admin.topics.create_each([NewTopic(name, -1, -1, assignments=dict(enumerate(replicas)))])

    async def known() -> bool:
        try:
            found = await admin.topics.describe(name)
        except ApiError:
            return False
        return len(found.partitions) == len(replicas) and all(each.leader >= 0 for each in found.partitions)

    await eventually(known, bool)
    return [TopicPartition(name, index) for index in range(len(replicas))]


def test_a_move_and_the_election_that_follows(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        (at,) = await placed(admin, "moved", [1, 2])
        await admin.replicas.reassign({at: [3, 2]})
        await eventually(admin.replicas.reassignments, lambda found: not found)
        info = await eventually(lambda: partition(admin, at), lambda found: found.replicas == (3, 2))
        assert set(info.isr) == {2, 3}
        # Replica 1 led and went, so somebody else was elected; a new order alone elects nobody.
        assert info.leader in (2, 3)
        await admin.replicas.reassign({at: [2, 3] if info.leader == 3 else [3, 2]})
        assert await admin.replicas.elect_each([at]) == Outcomes({at: True})
        await eventually(lambda: partition(admin, at), lambda found: found.leader == 5 - info.leader)
        await admin.replicas.elect([at])
        assert await admin.replicas.elect_each([at]) == Outcomes({at: False}), "the right one leads"
        assert await admin.replicas.elect_each() == Outcomes(), "nothing to do anywhere"

    run(cluster, test)


def test_a_move_that_cannot_end_is_seen_and_cancelled(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        (at,) = await placed(admin, "throttled", [1])
        await admin.configs.set(
            Resource.topic("throttled"),
            {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"},
        )
        brokers = [Resource(ResourceType.BROKER, str(each)) for each in (1, 2)]
        rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
        for broker in brokers:
            await admin.configs.set(broker, dict.fromkeys(rates, "1000"))
        async with Producer(admin.cluster) as producer:
            await asyncio.gather(*(producer.send("throttled", bytes(100_000), partition=0) for _ in range(40)))
        await admin.replicas.reassign({at: [2]})
        (move,) = await admin.replicas.reassignments([at])
        assert (move.partition, move.adding, move.removing, move.target) == (at, (2,), (1,), (2,))
        assert set(move.replicas) == {1, 2}
        assert await admin.replicas.reassignments([TopicPartition("moved", 0)]) == []
        await admin.replicas.cancel([at])
        assert await admin.replicas.reassignments() == []
        await eventually(lambda: partition(admin, at), lambda found: found.replicas == (1,))
        for broker in brokers:
            await admin.configs.set(broker, dict.fromkeys(rates))

    run(cluster, test)


def test_refusals_come_per_partition(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        good, other = await placed(admin, "refused", [1], [2])
        missing = TopicPartition("refused", 7)
        replicas = admin.replicas
        outcomes = await replicas.reassign_each({good: [1, 9], other: [2], missing: [1]})
        assert outcomes.found == {other: None}
        assert codes(outcomes) == {
            good: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert codes(await replicas.cancel_each([good])) == {good: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
        refused = await replicas.reassign_each({good: [1, 2]}, allow_factor_change=False)
        assert codes(refused) == {good: ErrorCode.INVALID_REPLICATION_FACTOR}
        elected = await replicas.elect_each([missing, other])
        assert elected.found == {other: False} and codes(elected) == {missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert codes(await replicas.move_to_disk_each(1, {good: "/nowhere"})) == {good: ErrorCode.LOG_DIR_NOT_FOUND}
        with pytest.raises(ApiError, match=r"refused-7: .* \(and 1 other failed\)"):
            await replicas.reassign({missing: [1], other: [2], good: [1, 9]})

    run(cluster, test)


def test_disks_of_all_brokers(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        await placed(admin, "disks", [1, 2, 3])
        await placed(admin, "more", [3, 1])

        async def holders() -> list[int]:
            dirs = await admin.nodes.log_dirs()
            return [each.node_id for each in dirs if any(replica.topic == "disks" for replica in each.replicas)]

        await eventually(holders, lambda found: found == [1, 2, 3])
        settings = await admin.configs.describe_each(
            [Resource.topic("disks"), Resource.topic("more")], ["min.insync.replicas"]
        )
        assert [[each.value for each in entries] for entries in settings.all().values()] == [["1"], ["1"]]

    run(cluster, test)


def test_the_quorum(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        quorum = await admin.voters.quorum()
        assert [each.node_id for each in quorum.voters] == [1, 2, 3] and quorum.observers == ()
        assert quorum.leader_id in (1, 2, 3) and quorum.high_watermark > 0
        assert {node_id: at[0].port for node_id, at in quorum.endpoints.items()} == cluster.controller_ports
        # The voters of this one are in its property files, and stay there.
        with pytest.raises(ApiError) as refusal:
            await admin.voters.remove(1, bytes(15) + b"x")
        assert refusal.value.code == ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(ApiError) as refusal:
            await admin.voters.add(4, bytes(15) + b"x", [VoterEndpoint("CONTROLLER", "127.0.0.1", 1)])
        assert refusal.value.code == ErrorCode.UNSUPPORTED_VERSION

    run(cluster, test)


def test_features(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        before = {each.name: each for each in await admin.nodes.features()}
        newest = before["group.version"].max_version
        await admin.nodes.update_features({"group.version": 0}, Upgrade.SAFE_DOWNGRADE, validate_only=True)
        await admin.nodes.update_features({"group.version": 0}, Upgrade.SAFE_DOWNGRADE)

        async def level() -> int | None:
            return {each.name: each.finalized for each in await admin.nodes.features()}["group.version"]

        await eventually(level, lambda found: not found)
        await admin.nodes.update_features({"group.version": newest})
        await eventually(level, lambda found: found == newest)
        with pytest.raises(ApiError) as refusal:
            await admin.nodes.update_features({"group.version": newest + 100})
        assert refusal.value.code in (ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FEATURE_UPDATE_FAILED)

    run(cluster, test)


def test_a_broker_leaves(cluster: ProcessCluster) -> None:
    """The last test: it takes the cluster's third node away, which led a partition with an open transaction."""

    async def test(admin: Admin) -> None:
        (at,) = await placed(admin, "led", [3, 1])
        options = ProducerOptions(transactional_id="hangs", linger_ms=0)
        async with Producer(cluster.bootstrap, options) as producer:
            await producer.begin()
            await producer.send("led", b"of a transaction", partition=0)
            assert [each.current_txn_start_offset for each in await admin.topics.producers(at)] == [0]
            await leaves(admin)
            # Others lead and coordinate now, which this client has to find out.
            assert [each.current_txn_start_offset for each in await admin.topics.producers(at)] == [0]
            assert [each.transactional_id for each in await admin.transactions.all()] == ["hangs"]
            assert await admin.groups.all() == []
            assert (await admin.transactions.abort_in(at, 0)).current_txn_start_offset == 0
            assert [each.current_txn_start_offset for each in await admin.topics.producers(at)] == [-1]
            with pytest.raises(ApiError, match="no open transaction"):
                await admin.transactions.abort_in(at, 0)

    async def leaves(admin: Admin) -> None:
        described = await admin.nodes.describe(fenced=True)
        assert [(each.node_id, each.rack, each.is_fenced) for each in described.brokers] == [
            (1, "a", False),
            (2, "b", False),
            (3, "c", False),
        ]
        with pytest.raises(ApiError) as refusal:
            await admin.nodes.unregister(9)
        assert refusal.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED
        await asyncio.to_thread(cluster.stop_node, 3)

        async def fenced() -> list[int]:
            return [each.node_id for each in (await admin.nodes.describe(fenced=True)).brokers if each.is_fenced]

        await eventually(fenced, lambda found: found == [3])
        assert [each.node_id for each in (await admin.nodes.describe()).brokers] == [1, 2]
        await admin.nodes.unregister(3)
        await eventually(fenced, lambda found: found == [])

    run(cluster, test)


def test_users_and_their_passwords(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        users = admin.users
        await users.set_password("alice", "one", iterations=5_000)
        await users.set_password("alice", "two", mechanism=ScramMechanism.SHA_256)
        both = (ScramInfo(ScramMechanism.SHA_256, 16_384), ScramInfo(ScramMechanism.SHA_512, 5_000))
        await eventually(users.all, lambda found: found.get("alice") == both)
        weak = ScramPassword("weak", "x", iterations=1)
        outcomes = await users.set_password_each([weak, ScramPassword("bob", "three")])
        assert outcomes.found == {"bob": None} and codes(outcomes) == {"weak": ErrorCode.UNACCEPTABLE_CREDENTIAL}
        await eventually(users.all, lambda found: list(found) == ["alice", "bob"])
        described = await users.describe_each(["bob", "nobody"])
        assert described.found == {"bob": (ScramInfo(ScramMechanism.SHA_512, 16_384),)}
        assert codes(described) == {"nobody": ErrorCode.RESOURCE_NOT_FOUND}
        await users.remove("alice", ScramMechanism.SHA_256)
        await eventually(lambda: users.describe("alice"), lambda found: found == both[1:])
        await users.remove("alice")
        removed = await users.remove_each([("bob", ScramMechanism.SHA_512), ("eve", ScramMechanism.SHA_512)])
        assert removed.found == {"bob": None} and codes(removed) == {"eve": ErrorCode.RESOURCE_NOT_FOUND}
        await eventually(users.all, lambda found: not found)
        assert "three" not in repr(ScramPassword("bob", "three"))

    run(cluster, test)


def test_quotas(cluster: ProcessCluster) -> None:
    alice, everybody = QuotaEntity(user="alice"), QuotaEntity(user=DEFAULT)
    app = QuotaEntity(user="alice", client_id="app")
    home = QuotaEntity(ip="127.0.0.9")

    async def test(admin: Admin) -> None:
        quotas = admin.quotas
        await quotas.alter(alice, {"producer_byte_rate": 1_000, "request_percentage": 12.5})
        wanted = {app: {"consumer_byte_rate": 5}, everybody: {"request_percentage": -1}, home: {}}
        outcomes = await quotas.alter_each(wanted)
        assert set(outcomes.found) == {app, home} and codes(outcomes) == {everybody: ErrorCode.INVALID_REQUEST}
        await quotas.alter(everybody, {"controller_mutation_rate": 3}, validate_only=True)
        of_alice = {"producer_byte_rate": 1_000, "request_percentage": 12.5}
        await eventually(quotas.describe, lambda found: found == {alice: of_alice, app: {"consumer_byte_rate": 5}})
        assert list(await quotas.describe(alice, strict=True)) == [alice]
        assert list(await quotas.describe(QuotaEntity(client_id=ANY))) == [app]
        assert await quotas.describe(everybody) == {}
        await quotas.alter_each({alice: dict.fromkeys(of_alice), app: {"consumer_byte_rate": None}})
        await eventually(quotas.describe, lambda found: not found)
        with pytest.raises(ValueError, match="ANY"):
            await quotas.alter(QuotaEntity(user=ANY), {"producer_byte_rate": 1})

    run(cluster, test)


def test_plaintext_clients_get_no_tokens(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        for asking in (admin.tokens.create(), admin.tokens.all(), admin.tokens.renew(b"x"), admin.tokens.expire(b"x")):
            with pytest.raises(ApiError) as refused:
                await asking
            assert refused.value.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED

    run(cluster, test)
