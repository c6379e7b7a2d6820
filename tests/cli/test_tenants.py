"""`ottla tenant`: the life of a tenant, and what is left in the metadata afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import confluent_kafka
import pytest
from tests.cli.conftest import Run, invoke
from tests.support.waiting import WAIT_S, until

from ottla.cli.registry.calls import RegistryCalls
from ottla.cli.tenant.subjects import subjects_of
from ottla.client.blocking.blocking import Blocking
from ottla.client.share.options import ShareOptions
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource, ResourceType
from ottla.model.settings.sasl import OTTLA_SCRAM_UNKNOWN_USERS_SECRET
from ottla.testing.broker import EmbeddedBroker

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
INNER = '{"type": "record", "name": "Inner", "fields": []}'
OUTER = '{"type": "record", "name": "Outer", "fields": [{"name": "inner", "type": "Inner"}]}'
LOGIN = MappingProxyType(
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "acme.app",
        "sasl.password": "secret",
    }
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    settings = {
        "authorizer.class.name": STANDARD,
        "super.users": "User:ANONYMOUS",
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "group.share.heartbeat.interval.ms": 100,
        "group.share.min.heartbeat.interval.ms": 100,
    }
    with EmbeddedBroker(tmp_path / "data", settings) as running:
        yield running


@pytest.fixture
def ottla(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    monkeypatch.setenv("OTTLA_USER_PASSWORD", "secret")

    def run(*arguments: str, code: int = 0) -> Run:
        done = invoke(*arguments, env={"OTTLA_BOOTSTRAP": broker.bootstrap})
        assert done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
        return done

    return run


def leave_traces(broker: EmbeddedBroker, prefix: str, topic: str) -> confluent_kafka.Producer:
    """Use all that has names: groups of two kinds with offsets and settings, subjects that refer to each other,
    transactional ids. Return a producer with an open transaction.
    """
    with Blocking(broker.bootstrap) as client:
        client.admin.groups.set_offsets(f"{prefix}g", {TopicPartition(topic, 0): 0})
        client.admin.configs.set(Resource(ResourceType.GROUP, f"{prefix}g"), {"consumer.session.timeout.ms": 50_000})
        client.admin.configs.set(Resource(ResourceType.GROUP, f"{prefix}s"), {"share.auto.offset.reset": "earliest"})
        client.send(topic, b"x", partition=0)
        with client.share_consumer(ShareOptions(f"{prefix}s")) as taker:
            taker.subscribe([topic])
            until(lambda: taker.poll())
    registry = RegistryCalls(broker.registry.url)
    for context in ("", ":.x:"):
        registry.post({"schema": INNER}, "subjects", f"{context}{prefix}a", "versions")
        referred = [{"name": "Inner", "subject": f"{context}{prefix}a", "version": 1}]
        registry.post({"schema": OUTER, "references": referred}, "subjects", f"{context}{prefix}value", "versions")
    idle, opened = (
        confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": prefix + each})
        for each in ("idle", "open")
    )
    for each in (idle, opened):
        each.init_transactions(WAIT_S)
    opened.begin_transaction()
    opened.produce(topic, b"never committed", partition=0)
    assert opened.flush(WAIT_S) == 0
    return opened


def test_the_life_of_a_tenant(ottla: Callable[..., Run], broker: EmbeddedBroker) -> None:
    assert broker.node is not None
    before = broker.node.metadata.state.copy()
    assert ottla("tenant", "list", "--json").json == []
    told = ottla("tenant", "create", "acme", "--storage", "50GB", "--produce", "10MB/s", "--partitions", "20")
    assert "names that begin with acme., user acme.app" in told.err and "secret" not in told.err
    assert "there is a tenant acme already" in ottla("tenant", "create", "acme", code=1).err
    expected = {
        "tenant": "acme",
        "prefix": "acme.",
        "storage_bytes": 50_000_000_000,
        "partitions": 20,
        "connections": None,
        "users": {
            "acme.app": {"controller_mutation_rate": 20, "producer_byte_rate": 10_000_000, "request_percentage": 50}
        },
    }
    assert ottla("tenant", "show", "acme", "--json").json == expected
    assert ottla("tenant", "list", "--json").json == [expected]
    assert "storage bytes\t50000000000" in ottla("tenant", "show", "acme").lines
    entries = ottla("acl", "list", "--json").json
    assert {(each["resource"], each["name"], each["pattern"]) for each in entries} == {
        (kind, "acme.", "prefixed") for kind in ("topic", "group", "transactional-id")
    }
    ottla("tenant", "user", "add", "acme", "reader", "--produce", "1kB/s")
    ottla("tenant", "alter", "acme", "--connections", "7", "--consume", "5MB/s")
    shown = ottla("tenant", "show", "acme", "--json").json
    assert shown["connections"] == 7 and shown["partitions"] == 20
    assert shown["users"]["acme.reader"] == {
        "consumer_byte_rate": 5_000_000,
        "controller_mutation_rate": 20,
        "producer_byte_rate": 1_000,
        "request_percentage": 50,
    }
    assert "has no user acme.nobody" in ottla("tenant", "user", "remove", "acme", "nobody", "--yes", code=1).err
    ottla("tenant", "user", "remove", "acme", "reader", "--yes")
    assert list(ottla("tenant", "show", "acme", "--json").json["users"]) == ["acme.app"]
    ottla("topic", "create", "acme.orders", "-p", "3")
    ottla("topic", "create", "acmeother", "-p", "1")
    ottla("produce", "acme.orders", "x" * 1000)
    used = ottla("tenant", "usage", "acme", "--json").json
    assert (used["topics"], used["partitions"], used["partitions_max"]) == (1, 3, 20)
    assert 1000 < used["bytes"] == used["bytes_on_disk"] < 2000 and used["bytes_max"] == 50_000_000_000
    assert "partitions\t3\t20" in ottla("tenant", "usage", "acme").lines
    writer = leave_traces(broker, "acme.", "acme.orders")
    neighbour = leave_traces(broker, "acmeother", "acmeother")
    assert "still has 1 topic and 2 groups" in ottla("tenant", "delete", "acme", "--yes", code=1).err
    assert "nobody can agree" in ottla("tenant", "delete", "acme", "--with-data", code=1).err
    registry = ("--registry", broker.registry.url)
    assert "give --with-data" in ottla("tenant", "delete", "acme", "--yes", *registry, code=2).err
    told = ottla("tenant", "delete", "acme", "--with-data", "--yes", *registry).err
    assert "2 transactional ids stay until they expire" in told and "acme.idle" in told
    assert "acme.orders" not in ottla("topic", "list").out and "acmeother" in ottla("topic", "list").out
    with Blocking(broker.bootstrap) as client:
        states = {each.transactional_id: each.state for each in client.admin.transactions.all()}
        assert states["acme.open"] == "Empty" and states["acmeotheropen"] == "Ongoing"
        groups = [each.group_id for each in client.admin.groups.all()]
        assert groups == ["acmeotherg", "acmeothers", "schema-registry"]
        assert client.admin.configs.resources([ResourceType.GROUP]) == [
            Resource(ResourceType.GROUP, f"acmeother{each}") for each in "gs"
        ]
    assert subjects_of(RegistryCalls(broker.registry.url), "") == [
        ":.x:acmeothera",
        ":.x:acmeothervalue",
        "acmeothera",
        "acmeothervalue",
    ]
    neighbour.commit_transaction(WAIT_S)
    with pytest.raises(confluent_kafka.KafkaException) as fenced:
        writer.commit_transaction(WAIT_S)
    assert fenced.value.args[0].code() == confluent_kafka.KafkaError._FENCED
    with Blocking(broker.bootstrap) as client:
        client.admin.topics.delete("acmeother")
        client.admin.configs.set(Resource(ResourceType.GROUP, "acmeotherg"), {"consumer.session.timeout.ms": None})
        client.admin.configs.set(Resource(ResourceType.GROUP, "acmeothers"), {"share.auto.offset.reset": None})
    after = broker.node.metadata.state
    assert after.acls == before.acls and after.scram == before.scram
    secret = after.config(ResourceType.BROKER, "").pop(OTTLA_SCRAM_UNKNOWN_USERS_SECRET.name)
    assert not any(after.quotas.values()) and secret
    own = {resource: each for resource, each in after.configs.items() if each and resource.type != ResourceType.TOPIC}
    assert own == dict(before.configs), "but for what the first password brings"
    assert "there is no tenant acme" in ottla("tenant", "show", "acme", code=1).err


def test_the_rates_of_a_tenant(ottla: Callable[..., Run], broker: EmbeddedBroker) -> None:
    """Its user writes and reads; the neighbour's records count for nobody else, and the user cannot ask for rates."""
    for tenant in ("acme", "other"):
        ottla("tenant", "create", tenant)
    ottla("topic", "create", "acme.orders", "-p", "2")

    def rates(tenant: str) -> tuple[float, float]:
        used = ottla("tenant", "usage", tenant, "--json").json
        assert used["unmeasured_nodes"] == []
        return used["produced_byte_rate"], used["consumed_byte_rate"]

    assert rates("acme") == rates("other") == (0, 0)
    assert broker.node is not None
    host, port = broker.node.addresses[1]
    broker.clock.advance("2s")  # the broker looks at the tenant for the first time
    with Blocking(f"{host}:{port}", security=LOGIN) as client:
        for _ in range(10):
            client.send("acme.orders", b"x" * 10_000)
        for _ in range(2):
            assert len(list(client.read("acme.orders"))) == 10
        with pytest.raises(ApiError) as refused:
            client.run(client.admin.inner.nodes.tenant_rates_each("other")).all()
        assert refused.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    broker.clock.advance("1s")
    produced, consumed = rates("acme")
    # The samples reach back ten seconds and more, however fast this test is.
    assert 1_000 < produced < 10_500 and consumed == pytest.approx(2 * produced, rel=0.1)
    assert rates("other") == (0, 0)
    shown = dict(line.split("\t")[:2] for line in ottla("tenant", "usage", "acme").lines[1:])
    assert int(shown["bytes per second consumed"]) > int(shown["bytes per second produced"]) > 500
    broker.clock.advance("60s")
    assert rates("acme") == (0, 0), "it is quiet"


def test_users_without_a_password_go_with_their_tenant(broker: EmbeddedBroker, ottla: Callable[..., Run]) -> None:
    """Who shows a certificate or a token is known by ACLs and quotas only."""
    assert broker.node is not None
    ottla("acl", "add", "acmeother", "--consumer", "--topic", "shared", "--group", "theirs")
    ottla("quota", "set", "--user", "acmeother", "producer_byte_rate=1000")
    before = len(broker.node.metadata.state.acls), dict(broker.node.metadata.state.quotas)
    ottla("tenant", "create", "acme", "--no-user")
    ottla("acl", "add", "acme.cert", "--consumer", "--topic", "shared", "--group", "theirs")
    ottla("quota", "set", "--user", "acme.token", "producer_byte_rate=1000")
    ottla("quota", "set", "--user", "acme.token", "--client-id", "c", "producer_byte_rate=1000")
    ottla("tenant", "delete", "acme", "--yes")
    after = broker.node.metadata.state
    assert (len(after.acls), {entity: each for entity, each in after.quotas.items() if each}) == before


def test_users_without_a_password_are_users(ottla: Callable[..., Run]) -> None:
    ottla("tenant", "create", "acme", "--no-user")
    told = ottla("tenant", "alter", "acme", "--produce", "1MB/s", "--partitions", "3", code=1).err
    assert "tenant acme has no users" in told and "ottla tenant user add acme" in told
    assert ottla("tenant", "show", "acme", "--json").json["partitions"] is None, "nothing was changed"
    ottla("acl", "add", "acme.cert", "--consumer", "--topic", "shared", "--group", "theirs")
    ottla("quota", "set", "--user", "acme.token", "--client-id", "c", "producer_byte_rate=1000")
    assert ottla("tenant", "list").lines[1:] == ["acme\tunlimited\tunlimited\tunlimited\t2"]
    entries = ottla("acl", "list", "--json").json
    ottla("tenant", "alter", "acme", "--produce", "1MB/s")
    rate = {"producer_byte_rate": 1_000_000}
    assert ottla("tenant", "show", "acme", "--json").json["users"] == {"acme.cert": rate, "acme.token": rate}
    assert ottla("acl", "list", "--json").json == entries, "rates are no rights"
    ottla("tenant", "user", "remove", "acme", "cert", "--yes")
    assert list(ottla("tenant", "show", "acme", "--json").json["users"]) == ["acme.token"]


def test_without_an_authorizer(ottla_broker: EmbeddedBroker) -> None:
    """Brokers that keep no ACLs have tenants of limits, and of quotas."""
    env = {"OTTLA_BOOTSTRAP": ottla_broker.bootstrap}
    for each in (("create", "acme", "--no-user"), ("list",), ("show", "acme"), ("alter", "acme", "--partitions", "3")):
        assert invoke("tenant", *each, env=env).code == 0
    assert invoke("quota", "set", "--user", "acme.app", "producer_byte_rate=1000", env=env).code == 0
    assert invoke("tenant", "user", "remove", "acme", "app", "--yes", env=env).code == 0
    assert invoke("quota", "set", "--user", "acme.app", "producer_byte_rate=1000", env=env).code == 0
    assert invoke("tenant", "delete", "acme", "--yes", env=env).code == 0
    assert invoke("tenant", "list", "--json", env=env).json == []
    assert ottla_broker.node is not None
    assert not any(ottla_broker.node.metadata.state.quotas.values())


def test_groups_with_members_stay(ottla: Callable[..., Run], broker: EmbeddedBroker) -> None:
    """A deletion that they stop touches no topic, and is repeated when they have left."""
    ottla("tenant", "create", "acme", "--no-user")
    ottla("topic", "create", "acme.orders", "-p", "1")
    member = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "acme.readers"})
    member.subscribe(["acme.orders"])
    until(lambda: member.poll(0.1) or member.assignment())
    told = ottla("tenant", "delete", "acme", "--with-data", "--yes", code=1).err
    assert "NON_EMPTY_GROUP: group acme.readers still has members" in told
    assert "acme.orders" in ottla("topic", "list").out
    member.close()
    ottla("tenant", "delete", "acme", "--with-data", "--yes")
    assert ottla("tenant", "list", "--json").json == []


def test_a_tenant_without_users_and_limits(ottla: Callable[..., Run]) -> None:
    ottla("tenant", "create", "quiet", "--no-user")
    assert ottla("tenant", "list").lines[1:] == ["quiet\tunlimited\tunlimited\tunlimited\t0"]
    ottla("tenant", "user", "add", "quiet", "quiet.one")
    shown = ottla("tenant", "show", "quiet", "--json").json
    assert shown["users"] == {"quiet.one": {"controller_mutation_rate": 20, "request_percentage": 50}}
    ottla("tenant", "delete", "quiet", "--yes")


def test_limits_are_lifted(ottla: Callable[..., Run]) -> None:
    """`unlimited` takes away a limit or a rate; what is not given stays."""
    rates = ("--produce", "1kB/s", "--consume", "2kB/s", "--mutations", "5")
    ottla("tenant", "create", "acme", "--storage", "1GB", "--partitions", "4", "--connections", "5", *rates)

    def limits() -> tuple[object, ...]:
        shown = ottla("tenant", "show", "acme", "--json").json
        return shown["storage_bytes"], shown["partitions"], shown["connections"], shown["users"]["acme.app"]

    quotas = {
        "consumer_byte_rate": 2_000,
        "controller_mutation_rate": 5,
        "producer_byte_rate": 1_000,
        "request_percentage": 50,
    }
    assert limits() == (1_000_000_000, 4, 5, quotas)
    assert any("controller_mutation_rate=5" in line for line in ottla("tenant", "show", "acme").lines)
    ottla("tenant", "alter", "acme", "--storage", "unlimited", "--mutations", "unlimited")
    del quotas["controller_mutation_rate"]
    assert limits() == (None, 4, 5, quotas)
    ottla("tenant", "user", "add", "acme", "other", "--consume", "unlimited", "--mutations", "7")
    other = {"controller_mutation_rate": 7, "producer_byte_rate": 1_000, "request_percentage": 50}
    assert ottla("tenant", "show", "acme", "--json").json["users"]["acme.other"] == other
    ottla("tenant", "alter", "acme", "--partitions", "unlimited", "--connections", "unlimited")
    assert limits() == (None, None, None, quotas)
    ottla(
        "tenant",
        "alter",
        "acme",
        *(each for key in ("produce", "consume", "request-percentage") for each in (f"--{key}", "unlimited")),
    )
    assert limits() == (None, None, None, {})
    ottla("tenant", "alter", "acme", "--partitions", "0", "--mutations", "2.5")
    assert limits() == (None, 0, None, {"controller_mutation_rate": 2.5})


def test_a_setting_for_a_tenant_is_checked(ottla: Callable[..., Run]) -> None:
    set_default = ("config", "set", "broker", "default")
    for bad in ("@a.b=1", "@=1", "@_a=1", "@acme=-2", "@acme=many"):
        told = ottla(*set_default, f"ottla.tenant.partitions.max{bad}", code=1)
        assert "INVALID_REQUEST" in told.err, bad
