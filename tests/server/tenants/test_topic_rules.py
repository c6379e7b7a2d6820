"""The topic policy, and the partition limits of tenants, as clients meet them."""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka
import pytest
from tests.support.waiting import WAIT_S

from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.model.tenancy.tenants import TenantLimits
from ottla.testing.broker import EmbeddedBroker

EVERY_BROKER = Resource(ResourceType.BROKER, "")
POLICY = "ottla.topic.policy."


def refused(act: Callable[[], object]) -> str:
    """The text of the refusal by a policy."""
    with pytest.raises(ApiError) as told:
        act()
    assert told.value.code == ErrorCode.POLICY_VIOLATION
    return str(told.value)


def test_rules_for_all_and_by_prefix(ottla_broker: EmbeddedBroker) -> None:
    with Blocking(ottla_broker.bootstrap) as client:
        topics, configs = client.admin.topics, client.admin.configs
        topics.create("before", partitions=9)
        configs.set(
            EVERY_BROKER,
            {
                f"{POLICY}name.pattern": "[a-z.]+",
                f"{POLICY}partitions.min": 2,
                f"{POLICY}partitions.max": 4,
                f"{POLICY}retention.max.ms": 1000,
                f"{POLICY}partitions.max@log.": 6,
                f"{POLICY}partitions.max@log.small.": 2,
                f"{POLICY}replication.min@safe.": 2,
            },
        )
        short = {"retention.ms": 500}
        assert "does not match [a-z.]+ (rule ottla.topic.policy.name.pattern)" in refused(
            lambda: topics.create("T", partitions=2, configs=short)
        )
        assert "at least 2" in refused(lambda: topics.create("t", partitions=1, configs=short))
        assert "at most 4 (rule ottla.topic.policy.partitions.max)" in refused(
            lambda: topics.create("t", partitions=5, configs=short)
        )
        assert "retention.ms of t is 604800000" in refused(lambda: topics.create("t", partitions=2))
        assert "is -1" in refused(lambda: topics.create("t", partitions=2, configs={"retention.ms": -1}))
        assert "(rule ottla.topic.policy.replication.min@safe.)" in refused(
            lambda: topics.create("safe.t", partitions=2, configs=short)
        )
        assert "partitions.max@log.small.)" in refused(
            lambda: topics.create("log.small.t", partitions=3, configs=short)
        )
        topics.create("t", partitions=2, configs=short)
        topics.create("log.t", partitions=5, configs=short)
        topics.create("table", partitions=2, configs={"cleanup.policy": "compact"})
        assert "at most 4" in refused(lambda: topics.add_partitions("t", 5))
        topics.add_partitions("t", 4)
        long = {"retention.ms": "2000"}
        assert "retention.max.ms" in refused(lambda: configs.set(Resource.topic("t"), long))
        assert "retention.max.ms" in refused(lambda: configs.set(Resource.topic("t"), {"retention.ms": None}))
        with pytest.raises(ApiError, match="no regular expression"):
            configs.set(EVERY_BROKER, {f"{POLICY}name.pattern": "("})


def test_super_users_are_exempt_if_the_setting_says_so(
    ottla_broker_factory: Callable[..., EmbeddedBroker],
) -> None:
    settings = {"super.users": "User:ANONYMOUS", f"{POLICY}partitions.max": "1"}
    broker = ottla_broker_factory(**settings)
    with Blocking(broker.bootstrap) as client:
        refused(lambda: client.admin.topics.create("t", partitions=2))
        client.admin.configs.set(EVERY_BROKER, {f"{POLICY}super.users.exempt": "true"})
        client.admin.topics.create("t", partitions=2)
        client.admin.topics.add_partitions("t", 3)


def test_the_partitions_of_a_tenant(ottla_broker: EmbeddedBroker) -> None:
    with Blocking(ottla_broker.bootstrap) as client:
        topics = client.admin.topics
        client.admin.tenants.create("acme", TenantLimits(-1, 5, -1))
        topics.create("acme.a", partitions=3)
        assert "Tenant acme would have 6 partitions, allowed are 5." in refused(
            lambda: topics.create("acme.b", partitions=3)
        )
        topics.create("acmeb", partitions=7)
        topics.create("acme.b", partitions=1)
        refused(lambda: topics.add_partitions("acme.b", 3))
        topics.add_partitions("acme.b", 2)
        topics.delete("acme.a")
        topics.add_partitions("acme.b", 5)
        client.admin.tenants.set_limits("acme", TenantLimits(-1, -1, -1))
        topics.create("acme.c", partitions=50)


def test_topics_that_are_made_for_whoever_asks_follow_the_rules(
    ottla_broker_factory: Callable[..., EmbeddedBroker], caplog: pytest.LogCaptureFixture
) -> None:
    """The broker makes them, and a broker is a super user: but not here. Nor has a tenant more of them."""
    rules = {f"{POLICY}name.pattern": "[a-z.]+", f"{POLICY}super.users.exempt": "true"}
    broker = ottla_broker_factory(**{"super.users": "User:ANONYMOUS", "num.partitions": 2, **rules})
    told: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 5_000})
    with Blocking(broker.bootstrap) as client:
        client.admin.tenants.create("acme", TenantLimits(-1, 3, -1))
        for name in ("good", "Bad", "acme.one", "acme.two"):
            producer.produce(name, b"x", callback=lambda error, _: told.append(error))
        assert producer.flush(WAIT_S) == 0 and len(told) == 4
        assert sum(error is None for error in told) == 2
        made = client.admin.topics.names()
        assert "good" in made and "Bad" not in made
        assert len([name for name in made if name.startswith("acme.")]) == 1
    assert "Bad does not match [a-z.]+" in caplog.text and "Tenant acme would have 4 partitions" in caplog.text
