"""Nodes of Ottla and of Kafka that log in to each other with the tokens of a real OpenID Connect provider, over TLS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.cluster.whole import create, until_in_sync
from tests.compat.security.test_secure_mixed_cluster import TOPICS
from tests.compat.test_mixed_cluster import MIXES, PROPERTIES, QUORUM, members
from tests.server.security.oauth_settings import LOGIN, present
from tests.server.security.secure_writers import PARTITIONS, Writers, by_partition, read
from tests.server.security.secured import MODULES, Certificates
from tests.support import tools
from tests.support.clients.oauth import SCOPE, OAuthSecurity
from tests.support.processes.clusters import MixedCluster, Process, running
from tests.support.processes.kafka import RealKafka
from tests.support.processes.oidc import OidcProvider, bearer_listener
from tests.support.requests.acls import STANDARD_AUTHORIZER
from tests.support.requests.raw import RawConnection

LIFETIME_S = 20  # of a token: nodes log in again while the test runs
CLUSTERS = {**MIXES, "a quorum of both": QUORUM}
OIDC = f"{MODULES}.oauthbearer"


class TokenMixedCluster(MixedCluster):
    """Each listener has TLS and takes tokens, also those of controllers; only nodes and alice may do anything."""

    def __init__(self, directory: Path, words: tuple[str, ...], provider: OidcProvider) -> None:
        self._provider = provider
        self._certificates = Certificates.make(directory / "certificates")
        twice = {"transaction.state.log.replication.factor": "2", "transaction.state.log.min.isr": "1"}
        super().__init__(directory, members(words), properties=PROPERTIES | twice)

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        settings = super().settings_of(id, directory)
        for name in {"listeners", "advertised.listeners"} & settings.keys():
            settings[name] = settings[name].replace("PLAINTEXT://", "SASL_SSL://")
        own = {
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
            "controller.listener.names": "CONTROLLER",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self._provider.token_url,
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:node;User:alice",
            **bearer_listener(self._provider),
            **self._certificates.node(f"node-{id}"),
        }
        for listener in ("sasl_ssl", "controller"):
            prefix = f"listener.name.{listener}.oauthbearer.sasl"
            own |= {
                f"{prefix}.jaas.config": f'{LOGIN} clientId="node" clientSecret="node-secret" scope="{SCOPE}";',
                f"{prefix}.server.callback.handler.class": f"{OIDC}.OAuthBearerValidatorCallbackHandler",
                f"{prefix}.login.callback.handler.class": f"{OIDC}.OAuthBearerLoginCallbackHandler",
            }
        if id not in self.brokers:  # Kafka's controllers refuse a listener of brokers that they do not have
            del own["security.inter.broker.protocol"]
        return settings | own

    def make(self, id: int, directory: Path) -> Process:
        made = super().make(id, directory)
        if isinstance(made, RealKafka):  # which asks only providers that its JVM allows
            urls = f"{self._provider.token_url},{self._provider.keys_url}"
            made._jvm_options = (*made._jvm_options, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}")
        return made

    @property
    def alice(self) -> OAuthSecurity:
        login = ("OAUTHBEARER", "alice", "alice-secret", str(self._certificates.trusted))
        return OAuthSecurity("SASL_SSL", *login, token_url=self._provider.token_url)

    def librdkafka(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, "log_level": "0"} | self.alice.librdkafka()

    def connect(self, id: int, timeout_s: float) -> RawConnection:
        connection = RawConnection(self.address(id), timeout_s=timeout_s, tls=self._certificates.context)
        assert present(connection, self.alice._replace(authority="").fetch()).error_code == 0
        return connection


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[OidcProvider]:
    tools.require(tools.missing_node())
    made = OidcProvider(tmp_path / "provider.log", ["alice", "node"], lifetime_s=LIFETIME_S)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", CLUSTERS)
def test_brokers_of_both_kinds_replicate_by_tokens(
    name: str, java_tools: None, provider: OidcProvider, tmp_path: Path
) -> None:
    cluster = TokenMixedCluster(tmp_path, CLUSTERS[name], provider)
    with running(cluster):
        create(cluster, TOPICS, PARTITIONS, len(cluster.brokers))
        until_in_sync(cluster, TOPICS, PARTITIONS)
        with Writers(cluster.librdkafka()) as writers:
            writers.go_on()
            ours = [id for id in cluster.brokers if cluster._members[id].kind == "ottla"]
            cluster.kill(ours[-1])
            writers.go_on()
            cluster.start_node(ours[-1])
            until_in_sync(cluster, TOPICS, PARTITIONS)
            writers.go_on()
        assert not writers.problems
        for topic, numbers in (("records", writers.acknowledged), ("transactions", writers.committed)):
            assert read(cluster.librdkafka(), topic, len(numbers)) == by_partition(numbers)
