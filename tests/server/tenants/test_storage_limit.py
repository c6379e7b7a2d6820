"""Storage limits of tenants: who is over the limit cannot write, can read, and writes again when there is room."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
from tests.server.talk import produce_request
from tests.support.java.programs import JavaServer
from tests.support.processes.clusters import OttlaCluster, running
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S, until

from ottla.client.admin.topics import NewTopic
from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ErrorCode
from ottla.model.limits import TENANT_MEASURE_MS
from ottla.model.tenancy.tenants import TenantLimits
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.records.produce import ProduceRequest

POLICY_VIOLATION = confluent_kafka.KafkaError.POLICY_VIOLATION


def write(bootstrap: str, topic: str, partition: int = 0, size_bytes: int = 1000) -> int | None:
    """Write a record with librdkafka; return the error, or None."""
    told: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"x" * size_bytes, partition=partition, callback=lambda error, _: told.append(error))
    assert producer.flush(WAIT_S) == 0
    (error,) = told
    return None if error is None else int(error.code())


def is_refused(bootstrap: str, topic: str, partition: int = 0) -> Callable[[], bool]:
    return lambda: write(bootstrap, topic, partition) == POLICY_VIOLATION


def test_over_the_limit(ottla_broker: EmbeddedBroker) -> None:
    bootstrap = ottla_broker.bootstrap
    node = ottla_broker.node
    assert node is not None
    with Blocking(bootstrap) as client:
        client.admin.tenants.create("acme", TenantLimits(3_000, -1, -1))
        client.admin.topics.create("acme.a", partitions=1)
        client.admin.topics.create("acme.b", partitions=1)
        client.admin.topics.create("other", partitions=1)
        assert write(bootstrap, "acme.a") is None
        assert node.rooms.tenants.full is None
        until(is_refused(bootstrap, "acme.a"))  # the tenant is over its limit
        assert write(bootstrap, "acme.b") == POLICY_VIOLATION, "the limit is for all topics together"
        assert write(bootstrap, "other") is None
        assert node.rooms.tenants.full is not None
        assert "allowed are 3000" in node.rooms.tenants.full["acme"]
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "acme.g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["acme.a"])
        record = consumer.poll(WAIT_S)
        assert record is not None and record.error() is None, "reading goes on"
        consumer.close()
        client.admin.topics.delete("acme.a")
        until(lambda: write(bootstrap, "acme.b") is None)  # a deleted topic makes room
        until(is_refused(bootstrap, "acme.b"))  # the tenant is over its limit again
        client.admin.tenants.set_limits("acme", TenantLimits(-1, -1, -1))
        until(lambda: write(bootstrap, "acme.b") is None)  # the limit is gone


def test_clients_are_told_why(ottla_broker: EmbeddedBroker, java_clients_431: JavaServer) -> None:
    bootstrap = ottla_broker.bootstrap
    with Blocking(bootstrap) as client:
        client.admin.tenants.create("acme", TenantLimits(500, -1, -1))
        client.admin.topics.create("acme.a", partitions=1)
        assert write(bootstrap, "acme.a") is None
        until(is_refused(bootstrap, "acme.a"))
    reason = re.compile(r"Tenant acme has stored \d+ bytes, allowed are 500: it can write again when .*")
    with RawConnection(bootstrap) as connection:
        for version in range(8, ProduceRequest.versions[1] + 1):
            if version < 13:  # later ones name topics by id
                answer: Any = connection.call(produce_request({("acme.a", 0): [b"v"]}), version)
                (told,) = answer.responses[0].partition_responses
                assert told.error_code == ErrorCode.POLICY_VIOLATION
                assert reason.fullmatch(told.error_message)
    record = {"partition": 0, "value": base64.b64encode(b"v").decode()}
    asked = {"verb": "produce", "bootstrap": bootstrap, "topic": "acme.a", "records": [record]}
    (failure,) = java_clients_431.ask(asked)
    assert failure["error"] == "PolicyViolationException"
    assert reason.fullmatch(failure["message"])


def test_the_limit_is_for_the_whole_cluster(tmp_path: Path) -> None:
    with running(OttlaCluster(tmp_path)) as cluster:
        bootstrap = cluster.bootstrap
        with Blocking(bootstrap) as client:
            client.admin.tenants.create("acme", TenantLimits(3_000, -1, -1))
            placed = {index: [index + 1] for index in range(3)}
            client.admin.topics.create_each([NewTopic("acme.a", assignments=placed)]).all()
            for _ in range(4):
                assert write(bootstrap, "acme.a", 0) in (None, POLICY_VIOLATION)
            until(is_refused(bootstrap, "acme.a", 0))  # its leader refuses
            until(is_refused(bootstrap, "acme.a", 1))  # the leader of another partition learns of it
            until(is_refused(bootstrap, "acme.a", 2))  # and the third one, too
            used = client.admin.tenants.usage("acme")
            assert used.partitions == 3 and 3_000 < used.bytes_once == used.bytes_on_disk


def test_a_new_leader_counts_what_the_old_one_led_only_once(tmp_path: Path) -> None:
    with running(OttlaCluster(tmp_path)) as cluster:
        bootstrap = cluster.bootstrap
        with Blocking(bootstrap) as client:
            client.admin.tenants.create("acme", TenantLimits(50_000, -1, -1))
            client.admin.topics.create_each([NewTopic("acme.a", assignments={0: [2, 1, 3], 1: [1, 2, 3]})]).all()
            assert write(bootstrap, "acme.a", 0, 100_000) is None
            until(lambda: write(bootstrap, "acme.a", 1, 1) == POLICY_VIOLATION)  # node 1 knows what node 2 leads
            client.admin.tenants.set_limits("acme", TenantLimits(180_000, -1, -1))
            until(lambda: write(bootstrap, "acme.a", 1, 1) is None)
            cluster.kill(2)
            until_s = time.monotonic() + 3 * TENANT_MEASURE_MS / 1000
            while time.monotonic() < until_s:
                assert write(bootstrap, "acme.a", 0, 1) is None
