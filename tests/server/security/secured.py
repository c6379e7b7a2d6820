"""Settings of nodes whose listeners are all encrypted and authenticated, and of clients that connect to them."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.certificates import LOOPBACK, Authority
from tests.support.processes.clusters import OttlaCluster, Place
from tests.support.processes.kafka import CLUSTER_ID
from tests.support.requests.raw import RawConnection

from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

MODULES = "org.apache.kafka.common.security"
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret"}


def plain_jaas(own: str = "admin", users: Mapping[str, str] = PASSWORDS) -> str:
    """The JAAS line of a listener whose node logs in as `own`, and that knows these users."""
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return f'{MODULES}.plain.PlainLoginModule required username="{own}" password="{users[own]}" {known};'


@dataclass(frozen=True)
class Certificates:
    """The files of one test: an authority and what it has issued."""

    directory: Path
    authority: Authority

    @classmethod
    def make(cls, directory: Path) -> Certificates:
        directory.mkdir(parents=True, exist_ok=True)
        found = cls(directory, Authority())
        found.authority.write(found.trusted)
        return found

    @property
    def trusted(self) -> Path:
        return self.directory / "ca.pem"

    def node(self, name: str = "node", hosts: Sequence[str] = LOOPBACK) -> dict[str, str]:
        """TLS settings of a node, with a certificate of its own."""
        store = self.authority.node(hosts, common_name=name).write(self.directory, name)
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
        }

    def librdkafka(self, name: str | None = None) -> dict[str, str]:
        """TLS settings of a client of librdkafka; with `name`, it shows a certificate."""
        settings = {"ssl.ca.location": str(self.trusted)}
        if name is not None:
            store = str(self.authority.client(name).write(self.directory, name))
            settings |= {"ssl.certificate.location": store, "ssl.key.location": store}
        return settings

    @property
    def context(self) -> ssl.SSLContext:
        """What a client in Python needs to connect to the nodes, with a certificate of its own."""
        made = ssl.create_default_context(cafile=str(self.trusted))
        made.load_cert_chain(self.authority.client("admin").write(self.directory, "admin"))
        return made

    def ours(self, name: str | None = None) -> dict[str, str]:
        """The same for a client of Ottla or Java."""
        settings = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.trusted)}
        if name is not None:
            store = str(self.authority.client(name).write(self.directory, name))
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": store}
        return settings


SASL_PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")


class SaslListeners(NamedTuple):
    """Nodes whose listener has SASL, as their settings for SASL_PLAINTEXT say, but with this protocol."""

    protocol: str
    certificates: Certificates

    def settings(self, plain: Mapping[str, str]) -> dict[str, str]:
        if self.protocol == "SASL_PLAINTEXT":
            return dict(plain)
        made = {
            name.replace("sasl_plaintext", "sasl_ssl"): text.replace("SASL_PLAINTEXT", "SASL_SSL")
            for name, text in plain.items()
        }
        return made | self.certificates.node()

    def connect(self, place: str) -> RawConnection:
        tls = self.certificates.context if self.protocol == "SASL_SSL" else None
        return RawConnection(place, tls=tls)


def log_in(connection: RawConnection, user: str = "admin", passwords: Mapping[str, str] = PASSWORDS) -> RawConnection:
    """Authenticate a connection with PLAIN."""
    begun: Any = connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    message = f"\0{user}\0{passwords[user]}".encode()
    answer: Any = connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)
    assert (begun.error_code, answer.error_code) == (0, 0), answer
    return connection


class Way(NamedTuple):
    """How nodes prove to each other who they are: by SASL over TLS, or by their certificates alone."""

    brokers: str  # the mechanism of connections to brokers; "" for certificates
    controllers: str  # the same for connections to controllers

    @property
    def protocol(self) -> str:
        return "SASL_SSL" if self.brokers else "SSL"

    def settings(self, more: Sequence[str] = ()) -> dict[str, str]:
        """What all nodes have in common, with these further listeners of brokers. Clients may use PLAIN wherever there
        is SASL.
        """
        controllers = "SASL_SSL" if self.controllers else "SSL"
        names = ",".join(sorted({"PLAIN", self.brokers, self.controllers} - {""}))
        settings = {
            "listener.security.protocol.map": ",".join(
                [f"CONTROLLER:{controllers}", *(f"{each}:{self.protocol}" for each in (self.protocol, *more))]
            ),
            "controller.listener.names": "CONTROLLER",
            "security.inter.broker.protocol": self.protocol,
            "ssl.client.auth": "none" if self.brokers else "required",
            "listener.name.controller.ssl.client.auth": "none" if self.controllers else "required",
            "sasl.enabled.mechanisms": names,
            "sasl.mechanism.inter.broker.protocol": self.brokers or "GSSAPI",
            "sasl.mechanism.controller.protocol": self.controllers or "GSSAPI",
        }
        scram = f'{MODULES}.scram.ScramLoginModule required username="admin" password="{PASSWORDS["admin"]}";'
        for listener in ("sasl_ssl", "controller", *(each.lower() for each in more)):
            for name in names.split(","):
                line = plain_jaas() if name == "PLAIN" else scram
                settings[f"listener.name.{listener}.{name.lower()}.sasl.jaas.config"] = line
        return settings


PLAIN = Way("PLAIN", "PLAIN")
SCRAM = Way("SCRAM-SHA-512", "")  # controllers learn who there is from their quorum, which must exist first
CERTIFICATES = Way("", "")
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:CN=admin;User:CN=node-1;User:CN=node-2;User:CN=node-3",
}


def secured(
    settings: Mapping[str, str], way: Way, certificates: Certificates, name: str, hosts: Sequence[str] = LOOPBACK
) -> dict[str, str]:
    """The settings of a node of a plaintext cluster, with all its listeners secured."""
    known = [each.partition(":")[0] for each in settings.get("listener.security.protocol.map", "").split(",")]
    more = [each for each in known if each not in ("", "PLAINTEXT", "CONTROLLER")]
    listeners = {
        key: settings[key].replace("PLAINTEXT://", f"{way.protocol}://")
        for key in ("listeners", "advertised.listeners")
        if key in settings
    }
    made = dict(settings) | listeners | way.settings(more) | certificates.node(name, hosts)
    if "inter.broker.listener.name" in made:
        del made["security.inter.broker.protocol"]
    return made


class SecureCluster(OttlaCluster):
    """Nodes without a plaintext port: clients, brokers and controllers use TLS, and prove who they are."""

    def __init__(
        self,
        directory: Path,
        certificates: Certificates,
        properties: Mapping[str, str],
        way: Way = PLAIN,
        place: Place | None = None,
    ) -> None:
        self.certificates = certificates
        self._way = way
        super().__init__(directory, properties=properties, place=place)

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        settings = super().settings_of(id, directory)
        return secured(settings, self._way, self.certificates, f"node-{id}", self._hosts(id))

    def _hosts(self, id: int) -> list[str]:
        return [*dict.fromkeys((*LOOPBACK, self._host(id)))]

    def renew(self, id: int) -> None:
        """Write another certificate to the file of a node."""
        self.certificates.node(f"node-{id}", self._hosts(id))

    def add_users(self) -> None:
        """Format all nodes with the users as SCRAM users."""
        words = [f"SCRAM-SHA-512=[name={name},password={password}]" for name, password in PASSWORDS.items()]
        (self.directory / "users").write_text("\n".join(words))
        for id in self.ids:
            path = self.directory / f"node-{id}" / "server.properties"
            command = [sys.executable, "-m", "ottla", "format", str(path), "-t", CLUSTER_ID]
            subprocess.run([*command, "--add-scram", f"@{self.directory / 'users'}"], check=True, capture_output=True)

    def librdkafka(self, user: str) -> dict[str, str]:
        """The settings of a client of librdkafka."""
        settings = {"bootstrap.servers": self.bootstrap, "security.protocol": self._way.protocol, "log_level": "0"}
        if not self._way.brokers:
            return settings | self.certificates.librdkafka(user)
        credentials = {"sasl.username": user, "sasl.password": PASSWORDS[user], "sasl.mechanisms": self._way.brokers}
        return settings | credentials | self.certificates.librdkafka()

    def ours(self, user: str) -> dict[str, str]:
        """The settings of a client of Ottla or Java, without its addresses."""
        settings = {"security.protocol": self._way.protocol}
        if not self._way.brokers:
            return settings | self.certificates.ours(user)
        module = "plain.Plain" if self._way.brokers == "PLAIN" else "scram.Scram"
        line = f'{MODULES}.{module}LoginModule required username="{user}" password="{PASSWORDS[user]}";'
        return settings | {"sasl.mechanism": self._way.brokers, "sasl.jaas.config": line} | self.certificates.ours()

    def connect(self, id: int, timeout_s: float) -> RawConnection:
        connection = RawConnection(self.address(id), timeout_s=timeout_s, tls=self.certificates.context)
        return log_in(connection) if self._way.brokers else connection
