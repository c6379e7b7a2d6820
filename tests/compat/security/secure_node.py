"""One node, Ottla or a real Kafka, with a listener of each kind, an authorizer, and a user who may do little."""

from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.server.security.secured import MODULES, PASSWORDS, Certificates, plain_jaas
from tests.support.clients.security import ClientSecurity
from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.acls import STANDARD_AUTHORIZER
from tests.support.waiting import WAIT_S

LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "OLDER": "SSL",
    "MUTUAL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# Every way to connect that proves who the client is, by its name in tests: the listener and the mechanism.
WAYS = {"mutual": ("MUTUAL", "")} | {
    f"{listener}-{mechanism}": (listener, mechanism)
    for listener in ("SASL_PLAINTEXT", "SASL_SSL")
    for mechanism in MECHANISMS
}
PREFIX = "alice"


class SecureNode:
    """Whoever uses the plaintext listener may do everything; alice may use names that begin with hers."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.certificates = Certificates.make(directory / "certificates")
        self.directory = directory
        self._ports = dict(zip((*LISTENERS, "CONTROLLER"), free_ports(len(LISTENERS) + 1), strict=True))
        ports = self._ports["PLAINTEXT"], self._ports["CONTROLLER"]
        kafka = RealKafka(directory, properties=self._properties(), ports=ports)
        self.node: RealKafka | OttlaNode = kafka
        if kind == "ottla":
            path = directory / "server.properties"
            path.write_text("".join(f"{name}={value}\n" for name, value in kafka.properties.items()))
            self.node = OttlaNode.on_file(path, kafka.data_dir, kafka.port)

    def start(self) -> "SecureNode":
        self.node.start()
        self.admin = admin = AdminClient({"bootstrap.servers": self.at("PLAINTEXT"), "log_level": 0})
        for user, password in PASSWORDS.items():
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
                change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
                for outcome in admin.alter_user_scram_credentials([change]).values():
                    outcome.result(WAIT_S)
        self.allow("User:alice", "User:CN=alice")
        return self

    def stop(self) -> None:
        self.node.stop()

    def allow(self, *principals: str) -> None:
        """Let them use topics, groups and transactional ids whose names begin with the prefix."""
        kinds = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
        acls = [
            AclBinding(kind, PREFIX, ResourcePatternType.PREFIXED, name, "*", AclOperation.ALL, AclPermissionType.ALLOW)
            for kind in kinds
            for name in principals
        ]
        for outcome in self.admin.create_acls(acls).values():
            outcome.result(WAIT_S)

    def create(self, topic: str) -> str:
        """Create a topic; return its name."""
        for outcome in self.admin.create_topics([NewTopic(topic, 1)]).values():
            outcome.result(WAIT_S)
        return topic

    def at(self, listener: str) -> str:
        return f"127.0.0.1:{self._ports[listener]}"

    def security(self, listener: str, mechanism: str = "", user: str = "alice") -> ClientSecurity:
        """What a client needs for a listener."""
        protocol = LISTENERS[listener]
        authority = str(self.certificates.trusted) if protocol.endswith("SSL") else ""
        identity = ""
        if listener == "MUTUAL":
            identity = str(self.certificates.authority.client(user).write(self.certificates.directory, user))
        if not mechanism:
            return ClientSecurity(protocol, authority=authority, identity=identity)
        return ClientSecurity(protocol, mechanism, user, PASSWORDS[user], authority)

    def _properties(self) -> dict[str, str]:
        places = [f"{name}://{self.at(name)}" for name in LISTENERS]
        protocols = ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items())
        settings = {
            "listeners": ",".join([*places, f"CONTROLLER://{self.at('CONTROLLER')}"]),
            "advertised.listeners": ",".join(places),
            "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.older.ssl.enabled.protocols": "TLSv1.2",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS;User:admin",
            "delegation.token.secret.key": "a key that all nodes share",
        }
        for listener in ("sasl_plaintext", "sasl_ssl"):
            for mechanism in MECHANISMS:
                scram = f"{MODULES}.scram.ScramLoginModule required;"
                line = plain_jaas() if mechanism == "PLAIN" else scram
                settings[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = line
        return settings | self.certificates.node()
