"""Every client with tokens of a real OpenID Connect provider, with TLS and without.

Only alice may do anything, so a client whose token is not found to be hers fails. How clients renew their tokens, and
who is refused: tests/compat/test_oauth.py.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.conftest import invoke
from tests.compat.conftest import Names
from tests.compat.security.round_trips import (
    CLIENTS,
    OAUTHBEARER,
    OURS,
    client_of,
    our_round_trip,
    round_trip,
    set_system_properties,
)
from tests.server.security.secured import Certificates
from tests.support import tools
from tests.support.clients.oauth import OAuthSecurity
from tests.support.java.programs import JavaServer
from tests.support.ports import free_ports
from tests.support.processes.oidc import OidcProvider, bearer_listener
from tests.support.requests.acls import STANDARD_AUTHORIZER

from ottla.client.blocking.blocking import Blocking
from ottla.testing.broker import EmbeddedBroker

PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")


class Realm(NamedTuple):
    """A provider, and where a node that trusts it listens, by protocol."""

    provider: OidcProvider
    certificates: Certificates
    places: dict[str, str]

    def security(self, protocol: str) -> OAuthSecurity:
        authority = str(self.certificates.trusted) if protocol == "SASL_SSL" else ""
        login = ("OAUTHBEARER", "alice", "alice-secret")
        return OAuthSecurity(protocol, *login, authority, token_url=self.provider.token_url)

    def create(self, topic: str) -> str:
        """Create a topic with our own client; return its name."""
        with Blocking(self.places["SASL_SSL"], security=self.security("SASL_SSL").java()) as client:
            client.admin.topics.create(topic)
        return topic


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    tools.require(tools.missing_node())
    directory = tmp_path_factory.mktemp("oauth")
    certificates = Certificates.make(directory / "certificates")
    provider = OidcProvider(directory / "provider.log", ["alice"])
    ports = zip(PROTOCOLS, free_ports(2), strict=True)
    places = {protocol: f"127.0.0.1:{port}" for protocol, port in ports}
    settings = {
        "listeners": ",".join(f"{protocol}://{place}" for protocol, place in places.items()),
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:alice",
        **certificates.node(),
        **bearer_listener(provider),
    }
    try:
        with EmbeddedBroker(directory / "data", settings):
            yield Realm(provider, certificates, places)
    finally:
        provider.close()


@pytest.fixture(scope="module", autouse=True)
def allowed(realm: Realm, java_clients_431: JavaServer, java_clients_392: JavaServer) -> None:
    """Java asks only providers that its JVM allows."""
    for java in (java_clients_431, java_clients_392):
        set_system_properties(java, org_apache_kafka_sasl_oauthbearer_allowed_urls=realm.provider.token_url)


@pytest.mark.feature(OAUTHBEARER)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", CLIENTS)
def test_writes_and_reads(
    name: str, protocol: str, realm: Realm, new_name: Names, request: pytest.FixtureRequest
) -> None:
    client = client_of(name, request, realm.security(protocol))
    round_trip(client, realm.places[protocol], realm.create(new_name("bearer")))


@pytest.mark.tool(OURS)
@pytest.mark.feature(OAUTHBEARER)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_our_client(protocol: str, realm: Realm, new_name: Names) -> None:
    our_round_trip(realm.places[protocol], realm.create(new_name("bearer")), realm.security(protocol).java())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_commands(protocol: str, realm: Realm, new_name: Names, tmp_path: Path) -> None:
    """`ottla` with the file of properties that Kafka's tools take; it does not show the client's secret."""
    security, topic = realm.security(protocol), realm.create(new_name("bearer"))
    path = security.command_config(tmp_path / "client.properties")
    path.write_text(f"{path.read_text()}bootstrap.servers={realm.places[protocol]}\n")
    for words, told in ((("produce", topic, "a value"), ""), (("consume", topic, "-n", "1"), "a value")):
        done = invoke("--command-config", str(path), *words)
        assert done.code == 0 and told in done.out, done.err
        assert security.password not in done.out + done.err
