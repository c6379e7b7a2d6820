"""The audit log of clusters: what every node noted is in the topic, also what a node noted that is no broker."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.server.nodes import run, running, settings
from tests.server.security.secured import GUARDED, PASSWORDS, PLAIN, Certificates, secured
from tests.support.waiting import WAIT_S

from ottla.client.admin import Admin
from ottla.client.admin.configs import Resource
from ottla.client.cluster import Cluster
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.options import ConsumerOptions
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.model.names import AUDIT_TOPIC
from ottla.model.resources import ResourceType

Values = list[dict[str, str]]
Event = dict[str, Any]
OPEN = GUARDED | {"super.users": "User:ANONYMOUS"}
AUDIT = {"ottla.audit.to": "file,topic", "ottla.audit.events": "all"}


def audited(values: Values, more: dict[str, str]) -> Values:
    return [
        each | AUDIT | more | {"ottla.audit.file": f"{each['log.dirs']}.audit", "num.partitions": "3"}
        for each in values
    ]


def apart(directory: Path, brokers: int) -> Values:
    """A controller, and nodes that are brokers alone."""
    controller, *others = settings(directory, 1 + brokers)
    voter, _, _ = controller["controller.quorum.voters"].partition(",")
    of_clients, of_controllers = controller["listeners"].split(",")
    assert of_clients
    roles = [controller | {"process.roles": "controller", "listeners": of_controllers}]
    roles += [each | {"process.roles": "broker", "listeners": each["listeners"].split(",")[0]} for each in others]
    return [each | {"controller.quorum.voters": voter} for each in roles]


def bootstrap(values: Values) -> str:
    return values[-1]["listeners"].split(",")[0].partition("://")[2]


async def check(values: Values, security: dict[str, str] | None = None) -> list[Event]:
    """A topic is created; who did it is in the audit topic, as the node noted it that decides."""
    events: list[Event] = []
    async with asyncio.timeout(WAIT_S), Cluster.of(bootstrap(values), security) as cluster:
        admin = Admin(cluster)
        await admin.topics.create("orders", partitions=1)
        while AUDIT_TOPIC not in {each.name for each in await admin.topics.all()}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert len((await admin.topics.describe(AUDIT_TOPIC)).partitions) == 1, "the bounds are those of a partition"
        resource = Resource(ResourceType.TOPIC, AUDIT_TOPIC)
        configs = {each.name: each.value for each in await admin.configs.describe(resource)}
        assert {name: configs[name] for name in BOUNDS} == BOUNDS
        async with Consumer(cluster, ConsumerOptions(auto_offset_reset="earliest")) as consumer:
            consumer.assign([TopicPartition(AUDIT_TOPIC, 0)])
            async for record in consumer:
                events.append(json.loads(record.value or b""))
                if events[-1].get("named") == "orders":
                    break
    return events


BOUNDS = {
    "cleanup.policy": "delete",
    "retention.ms": str(limits.AUDIT_RETENTION_MS),
    "retention.bytes": str(limits.AUDIT_RETENTION_BYTES),
    "segment.bytes": str(limits.AUDIT_SEGMENT_BYTES),
}


@pytest.mark.parametrize("count", [1, 2])
def test_a_controller_that_is_no_broker(tmp_path: Path, count: int, caplog: pytest.LogCaptureFixture) -> None:
    values = audited(apart(tmp_path, count), OPEN)

    async def test() -> None:
        async with running(values):
            await check(values)
            assert "events are lost" not in caplog.text

    run(test)


def test_a_controller_that_is_no_broker_over_tls(tmp_path: Path) -> None:
    certificates = Certificates.make(tmp_path / "certificates")
    values = [
        secured(each, PLAIN, certificates, f"node-{each['node.id']}") for each in audited(apart(tmp_path, 1), GUARDED)
    ]
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "admin", "sasl.password": PASSWORDS["admin"]}
    events: list[Event] = []

    async def test() -> None:
        async with running(values):
            events.extend(await check(values, {"security.protocol": "SASL_SSL", **login, **certificates.ours()}))

    run(test)
    assert [each for each in events if (each["action"], each["resource"]) == ("AUTHENTICATE", "CONTROLLER")], (
        "what the controller noted before there was a broker"
    )


def test_three_nodes(tmp_path: Path) -> None:
    values = audited(settings(tmp_path, 3), OPEN)

    async def test() -> None:
        async with running(values):
            await check(values)

    run(test)
