"""Clients that log in with the tokens of a real OpenID Connect provider, and nodes that do so among each other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from tests.registry.security.web import ask
from tests.server.security.secured import MODULES, Certificates
from tests.support import tools
from tests.support.clients.oauth import OAuthSecurity
from tests.support.java.programs import JavaServer
from tests.support.lines import HarnessError
from tests.support.logins import Logins
from tests.support.processes.clusters import OttlaCluster
from tests.support.processes.oidc import OidcProvider, bearer_listener
from tests.support.processes.registry import record
from tests.support.requests.acls import STANDARD_AUTHORIZER
from tests.support.waiting import WAIT_S, until

from ottla import Admin, AuthenticationError, Consumer, ConsumerOptions, Producer
from ottla.client.registry import RegistryError, RegistryOptions, SchemaRegistry
from ottla.schemas.schema import SchemaSource
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry

LOGIN = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
LIFETIME_S = 6  # of a token: short, so that sessions end while a test runs


def client(
    provider: OidcProvider, name: str = "alice", secret: str = "", trusted: Path | None = None
) -> dict[str, str]:
    """The settings of our client and of Java's. `trusted`: the authority of nodes and provider, if they have TLS."""
    login = f'{LOGIN} clientId="{name}" clientSecret="{secret or f"{name}-secret"}" scope="kafka"'
    if trusted is not None:
        tls = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": " ".join([login, *(f'{key}="{text}"' for key, text in tls.items())]) + ";",
            "sasl.oauthbearer.token.endpoint.url": provider.token_url,
            **tls,
        }
    line = f"{login};"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": line,
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
    }


def java_client(provider: OidcProvider, name: str = "alice", secret: str = "") -> dict[str, str]:
    """Java refreshes tokens in time only if it may do so every second."""
    return client(provider, name, secret) | {
        "sasl.login.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.login.refresh.min.period.seconds": "0",
        "sasl.login.refresh.buffer.seconds": "1",
    }


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcProvider]:
    tools.require(tools.missing_node())
    log_path = tmp_path_factory.mktemp("oidc") / "log"
    made = OidcProvider(log_path, ["alice", "bob", "node"], lifetime_s=LIFETIME_S)
    yield made
    made.close()


@pytest.fixture
def broker(provider: OidcProvider, tmp_path: Path) -> Iterator[EmbeddedBroker]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        **bearer_listener(provider),
    }
    with EmbeddedBroker(tmp_path / "data", settings) as started:
        yield started


@pytest.fixture
def oauth_java(provider: OidcProvider, java_tools: None, tmp_path: Path) -> Iterator[JavaServer]:
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.token_url}"
    server = JavaServer("ottla.ClientServer", tmp_path / "java.log", options=[allowed])
    yield server
    server.close()


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch) -> Logins:
    return Logins(monkeypatch)


def test_java_over_several_tokens(
    broker: EmbeddedBroker, provider: OidcProvider, oauth_java: JavaServer, logins: Logins
) -> None:
    """One producer goes on while its tokens expire; each connection authenticates anew on its way."""
    own = {"bootstrap": broker.bootstrap, "config": java_client(provider) | {"acks": "all"}}
    oauth_java.ask({**own, "verb": "txn_open", "producer": "p", "id": "p"})
    sent = 0
    while logins.again < 2:
        oauth_java.ask({**own, "verb": "txn_begin", "producer": "p"})
        oauth_java.ask({**own, "verb": "txn_send", "producer": "p", "topic": "t", "partition": 0, "values": ["x"]})
        oauth_java.ask({**own, "verb": "txn_commit", "producer": "p"})
        sent += 1
    oauth_java.ask({**own, "verb": "txn_close", "producer": "p"})
    read = oauth_java.ask({**own, "verb": "digest", "positions": [["t", 0, 0]], "count": sent})
    assert read["count"] == sent
    assert logins.principals == {"User:alice"}


def test_java_is_refused(broker: EmbeddedBroker, provider: OidcProvider, oauth_java: JavaServer) -> None:
    request = {"verb": "produce", "bootstrap": broker.bootstrap, "topic": "t", "records": [{"value": "eA=="}]}
    with pytest.raises(HarnessError, match="401"):
        oauth_java.ask({**request, "config": java_client(provider, "alice", "guessed")})
    forged = client(provider)
    forged.pop("sasl.oauthbearer.token.endpoint.url")
    forged["sasl.jaas.config"] = f'{LOGIN} unsecuredLoginStringClaim_sub="alice";'
    (answer,) = oauth_java.ask({**request, "config": forged})
    assert answer["error"] == "SaslAuthenticationException"
    assert "invalid_token" in answer["message"]


def test_librdkafka(broker: EmbeddedBroker, provider: OidcProvider, logins: Logins) -> None:
    """It fetches tokens by itself, and renews its sessions."""
    errors: list[Any] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "bob",
            "sasl.oauthbearer.client.secret": "bob-secret",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        }
    )

    def send() -> int:
        producer.produce("t", b"x", callback=lambda error, _: errors.append(error) if error else None)
        assert producer.flush(WAIT_S) == 0
        return logins.again

    until(send, lambda times: times >= 2)
    assert errors == []
    assert logins.principals == {"User:bob"}


def test_our_client_over_several_tokens(broker: EmbeddedBroker, provider: OidcProvider, logins: Logins) -> None:
    async def run() -> int:
        security, sent = client(provider, "bob"), 0
        async with asyncio.timeout(WAIT_S), Producer(broker.bootstrap, security=security) as producer:
            while logins.again < 2:
                await producer.send("t", b"x")
                sent += 1
                await asyncio.sleep(0.05)
        options = ConsumerOptions(group_id="g", auto_offset_reset="earliest")
        async with asyncio.timeout(WAIT_S), Consumer(broker.bootstrap, options, security=security) as consumer:
            consumer.subscribe(["t"])
            read = 0
            async for _ in consumer:
                read += 1
                if read == sent:
                    break
        return read

    assert asyncio.run(run()) > 3
    assert logins.principals == {"User:bob"}


def test_our_client_is_refused(broker: EmbeddedBroker, provider: OidcProvider) -> None:
    async def run() -> None:
        wrong = client(provider, "bob", "guessed")
        async with asyncio.timeout(WAIT_S), Admin(broker.bootstrap, security=wrong) as admin:
            with pytest.raises(AuthenticationError, match="refused the client bob"):
                await admin.topics.names()

    asyncio.run(run())


class TokenCluster(OttlaCluster):
    """Nodes whose listeners all have TLS and take tokens, also those of the controllers."""

    def __init__(self, directory: Path, provider: OidcProvider, certificates: Certificates) -> None:
        self._provider = provider
        self._certificates = certificates
        super().__init__(directory)

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        places = f"SASL_SSL://{self.address(id)}", f"CONTROLLER://{self.controller_address(id)}"
        own = {
            "listeners": ",".join(places),
            "advertised.listeners": places[0],
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self._provider.token_url,
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:node;User:alice",
            **bearer_listener(self._provider),
            **self._certificates.node(f"node-{id}"),
        }
        login = client(self._provider, "node", trusted=self._certificates.trusted)["sasl.jaas.config"]
        for name in ("sasl_ssl", "controller"):
            own[f"listener.name.{name}.oauthbearer.sasl.jaas.config"] = login
        return super().settings_of(id, directory) | own


def test_nodes_and_a_registry_take_tokens_of_a_provider_with_tls(tmp_path: Path) -> None:
    """Three nodes replicate for longer than their tokens live, and a registry knows who asks by the same tokens."""
    tools.require(tools.missing_node())
    certificates = Certificates.make(tmp_path / "certificates")
    identity = certificates.authority.server().write(certificates.directory, "provider")
    provider = OidcProvider(tmp_path / "log", ["alice", "node"], lifetime_s=LIFETIME_S, identity=identity)
    cluster = TokenCluster(tmp_path, provider, certificates)

    async def run() -> None:
        bootstrap, security = cluster.bootstrap, client(provider, trusted=certificates.trusted)
        async with asyncio.timeout(WAIT_S), Admin(bootstrap, security=security) as admin:
            await admin.topics.create("t", partitions=3, replication_factor=3)
        loop = asyncio.get_running_loop()
        end_s = loop.time() + 2.5 * LIFETIME_S
        async with asyncio.timeout(WAIT_S), Producer(bootstrap, security=security) as producer:
            asking = asyncio.create_task(asyncio.to_thread(ask_registry, bootstrap, provider, certificates))
            while loop.time() < end_s:
                await producer.send("t", b"x")  # acks=all: the followers have it
            await asking

    try:
        cluster.start()
        asyncio.run(run())
    finally:
        cluster.stop()
        provider.close()


def ask_registry(bootstrap: str, provider: OidcProvider, certificates: Certificates) -> None:
    """A registry of the cluster, which logs in with tokens, and its clients: alice, one without rights, and nobody."""
    own = client(provider, "node", trusted=certificates.trusted)
    settings = {f"kafkastore.{name}": text for name, text in own.items()} | certificates.node("registry")
    settings |= {
        "listeners": "https://127.0.0.1:0",
        "authentication.method": "bearer",
        "super.users": "User:alice",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.issuer": provider.issuer,
        "sasl.oauthbearer.expected.audience": provider.audience,
        "connection.failed.authentication.delay.ms": "1",
    }
    registry, trusted = Registry(bootstrap, settings=settings).start(), certificates.trusted

    def token(name: str) -> str:
        login = ("OAUTHBEARER", name, f"{name}-secret", str(trusted))
        return OAuthSecurity("SASL_SSL", *login, token_url=provider.token_url).fetch()

    def status(bearer: str) -> int:
        header = ("Authorization", f"Bearer {bearer}")
        return ask(registry.url, "GET", "/subjects", header, trusted=trusted).status

    try:
        prefix = "schema.registry.ssl.truststore"
        tls = {f"{prefix}.type": "PEM", f"{prefix}.location": str(trusted)}
        alice = SchemaRegistry(RegistryOptions.of(registry.url, {"bearer.auth.token": token("alice"), **tls}))
        assert alice.register("s", SchemaSource(record("R"))) == 1
        head, claims, _ = token("alice").split(".")
        _, others, signature = token("node").split(".")
        assert status(f"{head}.{others}.{signature}") == 200
        assert status(f"{head}.{claims}.{signature}") == status(f"{head}.{claims}.") == 401
        stranger = SchemaRegistry(RegistryOptions.of(registry.url, {"bearer.auth.token": token("node"), **tls}))
        with pytest.raises(RegistryError, match="40301"):
            stranger.register("s", SchemaSource(record("R", "f")))
    finally:
        registry.stop()
