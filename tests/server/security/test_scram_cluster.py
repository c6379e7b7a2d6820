"""Three nodes whose brokers log in to each other with SCRAM from their first start; users and tokens on all of them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.server.security.secured import MODULES, plain_jaas
from tests.support.processes.clusters import OttlaCluster, ProcessCluster, running
from tests.support.waiting import WAIT_S, until_async

from ottla import Admin, ApiError, ClientError, ClientOptions, Producer, parse_bootstrap
from ottla.client.admin.tokens import DelegationToken
from ottla.model.errors import ErrorCode
from ottla.security.principal import Principal

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
SCRAM_MODULE = f"{MODULES}.scram.ScramLoginModule required"
USERS = {"broker": "broker-secret", "alice": "alice-secret"}


class ScramCluster(OttlaCluster):
    """Brokers use SCRAM, with users from `ottla format --add-scram`. Controllers, which keep them, use PLAIN."""

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        own = f'{SCRAM_MODULE} username="broker" password="{USERS["broker"]}";'
        return super().settings_of(id, directory) | {
            "listeners": f"SASL_PLAINTEXT://{self.address(id)},CONTROLLER://{self.controller_address(id)}",
            "advertised.listeners": f"SASL_PLAINTEXT://{self.address(id)}",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": own,
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": plain_jaas(),
            "delegation.token.secret.key": "a key that all nodes share",
        }

    def start(self, timeout_s: float = 2 * WAIT_S) -> ProcessCluster:
        users = self.directory / "users"
        users.write_text("".join(f"SCRAM-SHA-512=[name={name},password={word}]\n" for name, word in USERS.items()))
        for id in self.ids:
            path = self.data_directory(id).with_name("server.properties")
            words = ["format", str(path), "--cluster-id", CLUSTER_ID, "--add-scram", f"@{users}"]
            subprocess.run([sys.executable, "-m", "ottla", *words], check=True, capture_output=True)
        return super().start(timeout_s)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    with running(ScramCluster(tmp_path_factory.mktemp("cluster"))) as started:
        yield started


def login(user: str, password: str, *, is_token: bool = False) -> Mapping[str, str]:
    extension = ' tokenauth="true"' if is_token else ""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM_MODULE} username="{user}" password="{password}"{extension};',
    }


def options(bootstrap: str, security: Mapping[str, str]) -> ClientOptions:
    return ClientOptions(parse_bootstrap(bootstrap), security=security, api_timeout_ms=10_000)


async def eventually(look: Callable[[], Awaitable[object]]) -> None:
    """Wait until a change has reached the broker that is asked."""

    async def works() -> bool:
        try:
            await look()
        except (ApiError, ClientError):
            return False
        return True

    await until_async(works)


def test_brokers_replicate_and_users_are_known_everywhere(cluster: ProcessCluster) -> None:
    async def test() -> None:
        security = login("alice", USERS["alice"])
        async with Admin(options(cluster.bootstrap, security)) as admin:
            await admin.topics.create("t", partitions=3, replication_factor=3)
            await admin.users.set_password("bob", "bob-secret")
            async with Producer(admin.cluster) as producer:
                for partition in range(3):
                    await producer.send("t", b"x", partition=partition)
        for id in cluster.ids:
            known = login("bob", "bob-secret")

            async def look(address: str = cluster.address(id), known: Mapping[str, str] = known) -> object:
                async with Admin(options(address, known)) as here:
                    return await here.topics.describe("t")

            await eventually(look)

    asyncio.run(test())


def test_a_token_of_one_node_is_known_to_all(cluster: ProcessCluster) -> None:
    """Each node is asked for a token: two of them forward the request, with the principal, to the controller."""

    async def created(address: str) -> DelegationToken:
        async with Admin(options(address, login("alice", USERS["alice"]))) as admin:
            return await admin.tokens.create(renewers=[Principal.user("broker")])

    async def test() -> None:
        tokens = [await created(cluster.address(id)) for id in cluster.ids]
        assert {str(token.owner) for token in tokens} == {"User:alice"}
        for token, id in zip(tokens, (2, 3, 1), strict=True):
            bearer = options(cluster.address(id), login(token.token_id, token.password, is_token=True))

            async def look(bearer: ClientOptions = bearer) -> object:
                async with Admin(bearer) as admin:
                    return await admin.topics.names()

            await eventually(look)
            async with Admin(bearer) as admin:
                with pytest.raises(ApiError) as refused:
                    await admin.tokens.create()
                assert refused.value.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            async with Admin(options(cluster.address(id), login("broker", USERS["broker"]))) as renewer:
                assert await renewer.tokens.renew(token.hmac, 60_000) < token.expires_ms
                await renewer.tokens.expire(token.hmac)

            async def gone(bearer: ClientOptions = bearer) -> bool:
                try:
                    await look(bearer)
                except ClientError:
                    return True
                return False

            await until_async(gone)

    asyncio.run(test())
