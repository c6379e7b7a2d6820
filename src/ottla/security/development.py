"""The security of a cluster on one machine, for development and tests: users, settings of nodes, of clients and of the
registry. `ottla up --secure` writes them to files, and the pytest plugin uses them for a broker in the test process.

Rules:
- Clients and brokers log in with SCRAM-SHA-512 over TLS. `admin` (of the user) and `node` (of the nodes) are super
  users; everybody else needs ACLs.
- Paths of certificates and passwords are given: this module reads and writes no files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.model.config import LISTENER_PREFIX
from ottla.model.limits import SCRAM_ITERATIONS_MAX
from ottla.model.settings.authorizer import AUTHORIZER_CLASS_NAME, STANDARD_AUTHORIZER, SUPER_USERS
from ottla.model.settings.network import SECURITY_INTER_BROKER_PROTOCOL
from ottla.model.settings.registry import AUTHENTICATION_METHOD
from ottla.model.settings.sasl import (
    SASL_ENABLED_MECHANISMS,
    SASL_JAAS_CONFIG,
    SASL_MECHANISM_INTER_BROKER_PROTOCOL,
)
from ottla.model.settings.security import (
    SSL_KEYSTORE_LOCATION,
    SSL_KEYSTORE_TYPE,
    SSL_TRUSTSTORE_LOCATION,
    SSL_TRUSTSTORE_TYPE,
)

if TYPE_CHECKING:
    from ottla.security.sasl.scram.arguments import ScramUser

CLIENT_LISTENER: Final = "SASL_SSL"
MECHANISM: Final = "SCRAM-SHA-512"
ADMIN: Final = "admin"
NODE: Final = "node"
LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_SUPER_USERS: Final = f"User:{ADMIN};User:{NODE}"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_SALT_SOURCE_BYTES: Final = 17
_STORE_PREFIX: Final = "kafkastore."
_PEM: Final = "PEM"


def jaas_line(user: str, password: str) -> str:
    """Return the JAAS configuration of a client that logs in with SCRAM."""
    return f'{_SCRAM_MODULE} required username="{user}" password="{password}";'


def scram_user(
    user: str, password: str, random_bytes: Callable[[int], bytes], iterations: int = SCRAM_ITERATIONS_MAX
) -> ScramUser:
    """Return a user that a new cluster knows from its first record on."""
    from ottla.security.sasl.scram.arguments import ScramUser
    from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS, credential_of, salt_from

    mechanism = SCRAM_MECHANISMS[MECHANISM]
    salt = salt_from(random_bytes(_SALT_SOURCE_BYTES))
    return ScramUser(user, mechanism, credential_of(password, salt, iterations, mechanism))


def node_settings(authority: str, node_password: str) -> dict[str, str]:
    """Return the settings that all nodes share, without those of their certificates."""
    own = f"{LISTENER_PREFIX}{CLIENT_LISTENER.lower()}.{MECHANISM.lower()}."
    return {
        SECURITY_INTER_BROKER_PROTOCOL.name: CLIENT_LISTENER,
        SSL_TRUSTSTORE_TYPE.name: _PEM,
        SSL_TRUSTSTORE_LOCATION.name: authority,
        SSL_KEYSTORE_TYPE.name: _PEM,
        SASL_ENABLED_MECHANISMS.name: MECHANISM,
        SASL_MECHANISM_INTER_BROKER_PROTOCOL.name: MECHANISM,
        own + SASL_JAAS_CONFIG.name: jaas_line(NODE, node_password),
        AUTHORIZER_CLASS_NAME.name: STANDARD_AUTHORIZER,
        SUPER_USERS.name: _SUPER_USERS,
    }


def registry_settings(authority: str, certificate: str, node_password: str) -> dict[str, str]:
    """Return the settings of a registry that takes the users of the cluster, and logs in to it as `node`; its
    `listeners` has to be https.
    """
    store = java_settings(authority, NODE, node_password)
    return {
        SSL_KEYSTORE_TYPE.name: _PEM,
        SSL_KEYSTORE_LOCATION.name: certificate,
        AUTHENTICATION_METHOD.name: "basic",
        SUPER_USERS.name: _SUPER_USERS,
        **{_STORE_PREFIX + name: value for name, value in store.items()},
    }


# --- clients


def java_settings(authority: str, user: str, password: str) -> dict[str, str]:
    """Return the settings of Kafka's own clients and tools."""
    return {**_tls(authority), "sasl.mechanism": MECHANISM, "sasl.jaas.config": jaas_line(user, password)}


def own_settings(authority: str, user: str, password: str) -> dict[str, str]:
    """Return the settings of Ottla's client; `password` may be `file:PATH` or `env:NAME`."""
    return {**_tls(authority), "sasl.mechanism": MECHANISM, "sasl.username": user, "sasl.password": password}


def librdkafka_settings(authority: str, user: str, password: str) -> dict[str, str]:
    """Return the settings of librdkafka and the clients that are built on it."""
    return {
        "security.protocol": CLIENT_LISTENER,
        "ssl.ca.location": authority,
        "sasl.mechanisms": MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
    }


def registry_client_settings(authority: str) -> dict[str, str]:
    """Return the settings, beside the URL, of registry clients that log in as the Kafka client beside them does: of
    Java's serializers and of Ottla.
    """
    prefix = "schema.registry."
    return {
        "basic.auth.credentials.source": "SASL_INHERIT",
        prefix + SSL_TRUSTSTORE_LOCATION.name: authority,
        prefix + SSL_TRUSTSTORE_TYPE.name: _PEM,
    }


def confluent_registry_settings(url: str, authority: str, user: str, password: str) -> dict[str, str]:
    """Return the settings of confluent-kafka's SchemaRegistryClient."""
    return {"url": url, "ssl.ca.location": authority, "basic.auth.user.info": f"{user}:{password}"}


def _tls(authority: str) -> Mapping[str, str]:
    return {
        "security.protocol": CLIENT_LISTENER,
        SSL_TRUSTSTORE_LOCATION.name: authority,
        SSL_TRUSTSTORE_TYPE.name: _PEM,
    }
