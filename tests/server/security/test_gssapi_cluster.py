"""Three nodes that log in to each other, brokers and controllers, with GSSAPI: records are replicated and read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.clients.kerberos import HOST, SERVICE, keytab_login, with_keytab
from tests.support.processes.clusters import OttlaCluster, running
from tests.support.processes.kdc import REALM, Kdc
from tests.support.requests.acls import STANDARD_AUTHORIZER

from ottla import Admin, Consumer, ConsumerOptions, Producer

NODE = f"{SERVICE}/{HOST}@{REALM}"


class KerberosCluster(OttlaCluster):
    """All listeners have GSSAPI, and only the nodes' own principal has rights."""

    def __init__(self, directory: Path, keytab: Path) -> None:
        self._keytab = keytab
        super().__init__(directory)

    def _host(self, id: int) -> str:
        return HOST

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        return super().settings_of(id, directory) | {
            "listeners": f"SASL_PLAINTEXT://{self.address(id)},CONTROLLER://{self.controller_address(id)}",
            "advertised.listeners": f"SASL_PLAINTEXT://{self.address(id)}",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.mechanism.inter.broker.protocol": "GSSAPI",
            "sasl.mechanism.controller.protocol": "GSSAPI",
            "sasl.kerberos.service.name": SERVICE,
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": keytab_login(NODE, self._keytab),
            "listener.name.controller.gssapi.sasl.jaas.config": keytab_login(NODE, self._keytab),
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": f"User:{SERVICE}",
        }


@pytest.mark.slow
def test_nodes_replicate_as_their_service(kdc: Kdc, tmp_path: Path) -> None:
    keytab = kdc.add("kafka/localhost")
    cluster = KerberosCluster(tmp_path, keytab)
    security = with_keytab(NODE, keytab).java()

    async def run() -> list[bytes | None]:
        async with Admin(cluster.bootstrap, security=security) as admin:
            await admin.topics.create("t", 3, 3)
        async with Producer(cluster.bootstrap, security=security) as producer:
            for number in range(90):
                await producer.send("t", b"%d" % number, key=b"%d" % number)
        got: list[bytes | None] = []
        options = ConsumerOptions(group_id="g", auto_offset_reset="earliest")
        async with Consumer(cluster.bootstrap, options, security=security) as consumer:
            consumer.subscribe(["t"])
            async for record in consumer:
                got.append(record.value)
                if len(got) == 90:
                    break
        return got

    with running(cluster):
        got = asyncio.run(run())
    assert sorted(int(each or b"") for each in got) == list(range(90))
