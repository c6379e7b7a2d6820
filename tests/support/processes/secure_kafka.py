"""A real Kafka whose listeners have all kinds of security, with certificates of an authority of its own."""

import base64
from collections.abc import Mapping
from pathlib import Path

from tests.support.certificates import Authority
from tests.support.ports import free_ports
from tests.support.processes.brisk import QUICK
from tests.support.processes.kafka import RealKafka

from ottla.client.address import Address
from ottla.client.connection import Connection
from ottla.security.sasl.scram.credentials import ScramMechanism, salted_password
from ottla.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest

USER, PASSWORD = "alice", "alice's secret"
# Each has its own port. ENCRYPTED: TLS alone; MUTUAL: with client certificates; OUTDATED: with an expired certificate;
# SASL and SECURE: every mechanism, without and with TLS; BRIEF: sessions of four seconds.
LISTENERS = {
    "ENCRYPTED": "SSL",
    "MUTUAL": "SSL",
    "OUTDATED": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SECURE": "SASL_SSL",
    "BRIEF": "SASL_PLAINTEXT",
}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_MODULE = "org.apache.kafka.common.security"
_LOGINS = {
    "plain": f'{_MODULE}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "scram-sha-256": f"{_MODULE}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_MODULE}.scram.ScramLoginModule required;",
    "oauthbearer": f'{_MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
}
ITERATIONS = 4096


class SecureKafka:
    """The broker, its authority, and its listeners by name."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority()
        self.ca_path = self.authority.write(directory / "ca.pem")
        self._ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        self.kafka = RealKafka(directory, properties=QUICK)
        self._server = self.authority.server()
        self.kafka.properties |= self._properties(directory)

    def start(self) -> "SecureKafka":
        self.kafka.start()
        return self

    def stop(self) -> None:
        self.kafka.stop()

    def at(self, listener: str) -> str:
        """The address of a listener; its certificate is for this name."""
        return f"localhost:{self._ports[listener]}"

    def security(self, listener: str, mechanism: str | None = None, password: str = PASSWORD) -> dict[str, str]:
        """The client's settings for a listener; for OAUTHBEARER, with a token that nobody signed."""
        protocol = LISTENERS[listener]
        settings = {"security.protocol": protocol}
        if protocol.endswith("SSL"):
            settings["ssl.truststore.location"] = str(self.ca_path)
        if mechanism == "OAUTHBEARER":
            line = f'{_MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";'
            settings |= {"sasl.mechanism": mechanism, "sasl.jaas.config": line}
        elif mechanism is not None:
            settings |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": password}
        return settings

    async def add_scram_user(self, user: str = USER, password: str = PASSWORD) -> None:
        """Create SCRAM credentials of both kinds, over the plaintext listener."""
        connection = await Connection.open(Address("127.0.0.1", self.kafka.port))
        for mechanism in ScramMechanism:  # Kafka takes one change of a user per request
            upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name=user,
                mechanism=int(mechanism),
                iterations=ITERATIONS,
                salt=b"salt of a test",
                salted_password=salted_password(password, b"salt of a test", ITERATIONS, mechanism),
            )
            answer = await connection.request(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]))
            assert [each.error_code for each in answer.results] == [0], answer
        connection.close()

    def _properties(self, directory: Path) -> Mapping[str, str]:
        plain = self.kafka.properties
        places = [f"{name}://localhost:{port}" for name, port in self._ports.items()]
        protocols = [f"{name}:{protocol}" for name, protocol in LISTENERS.items()]
        made = {
            "listeners": ",".join([plain["listeners"], *places]),
            "advertised.listeners": ",".join([plain["advertised.listeners"], *places]),
            "listener.security.protocol.map": ",".join([plain["listener.security.protocol.map"], *protocols]),
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._server.write(directory, "server")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca_path),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.outdated.ssl.keystore.type": "PEM",
            "listener.name.outdated.ssl.keystore.location": str(
                self.authority.server(expired=True).write(directory, "outdated")
            ),
            "delegation.token.secret.key": base64.b64encode(b"a key of a test").decode(),
        }
        for name, protocol in LISTENERS.items():
            if protocol.startswith("SASL"):
                made |= self._sasl(f"listener.name.{name.lower()}", brief=name == "BRIEF")
        return made

    def _sasl(self, prefix: str, *, brief: bool) -> Mapping[str, str]:
        made = {f"{prefix}.sasl.enabled.mechanisms": ",".join(MECHANISMS)}
        for mechanism, login in _LOGINS.items():
            made[f"{prefix}.{mechanism}.sasl.jaas.config"] = login
            if brief:
                made[f"{prefix}.{mechanism}.connections.max.reauth.ms"] = (
                    "4000"  # a client without CPU for what is left of them at a renewal loses its connection
                )
        return made
