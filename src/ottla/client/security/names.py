"""The names of the security settings that this client reads: Kafka's, and librdkafka's where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client.security.secret import HIDDEN, Secret

PROTOCOL: Final = "security.protocol"
# Settings whose values are secrets.
SECRETS: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "sasl.jaas.config",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
        "sasl.password",
        "basic.auth.user.info",
        "bearer.auth.token",
    }
)
TLS_NAMES: Final = frozenset(
    {
        "enable.ssl.certificate.verification",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
SASL_NAMES: Final = frozenset(
    {
        "sasl.jaas.config",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.kerberos.service.name",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
    }
)
# Settings of Java's or librdkafka's way to do the same: read without effect, so that their files can be used.
WITHOUT_EFFECT: Final = frozenset(
    {
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.oauthbearer.method",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)
# Settings that name a Java class. Kafka's own classes do what this client does without them.
JAVA_CLASSES: Final = frozenset(
    {
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "security.providers",
        "ssl.engine.factory.class",
        "ssl.provider",
    }
)
_KAFKA_CLASS: Final = "org.apache.kafka."
KNOWN: Final = frozenset({PROTOCOL}) | TLS_NAMES | SASL_NAMES | WITHOUT_EFFECT | JAVA_CLASSES
PREFIXES: Final = ("security.", "ssl.", "sasl.", "enable.ssl.")


def is_security_name(name: str) -> bool:
    """Return whether a setting of a client belongs to its security."""
    return name.startswith(PREFIXES)


def is_secret_name(name: str) -> bool:
    """Return whether the value of a setting is a secret, also if it is the setting of another client or service (with
    a prefix), or one that is not known here and has the name of a secret.
    """
    last = name.rpartition(".")[2]
    return any(name == each or name.endswith(f".{each}") for each in SECRETS) or last in ("password", "secret", "token")


def hidden(settings: Mapping[str, str | Secret]) -> dict[str, str]:
    """Return the settings as they may be shown: secrets are replaced."""
    return {name: HIDDEN if is_secret_name(name) else str(value) for name, value in settings.items()}


def check_names(settings: Mapping[str, str | Secret]) -> None:
    """Raise ValueError for settings that this client does not know or cannot follow."""
    for name, value in settings.items():
        if not isinstance(value, str | Secret):
            raise TypeError(f"security settings are texts, but {name} is a {type(value).__name__}")
        if name in JAVA_CLASSES and str(value) and not str(value).startswith(_KAFKA_CLASS):
            raise ValueError(f"{name} names Java code ({value}), which this client cannot run")
    unknown = [name for name in settings if name not in KNOWN]
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))}: there is no such security setting{_hint(unknown[0])}")


def _hint(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(KNOWN), n=1)
    return f"; is it {close[0]}?" if close else ""
