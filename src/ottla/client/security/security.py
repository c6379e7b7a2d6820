"""Security: how a client protects its connections and proves who it is. One value for all clients of a program.

    Security.of({"security.protocol": "SASL_SSL", "ssl.truststore.location": "ca.pem",
                 "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "alice", "sasl.password": "env:ALICE"})

Settings have Kafka's names (librdkafka's work as well, see `names.py`). A value that is a secret may name an
environment variable (`env:NAME`) or a file (`file:PATH`) that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.client.security.names import PROTOCOL, check_names
from ottla.client.security.sasl import Sasl
from ottla.client.security.secret import Secret
from ottla.client.security.tls import Tls
from ottla.client.security.values import SettingValues
from ottla.security.protocol import SecurityProtocol


@dataclass(frozen=True, slots=True)
class Security:
    """The security of connections. Its text shows no secret, and it can be pickled."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: Tls | None = None
    sasl: Sasl | None = None

    @classmethod
    def of(
        cls, settings: Mapping[str, str | Path | Secret], *, token_provider: Callable[[], str] | None = None
    ) -> Security:
        """Read Kafka's settings; raise ValueError for one that is wrong, missing or unknown. `token_provider` returns
        tokens for OAUTHBEARER; it is called in a thread.
        """
        if token_provider is not None and not callable(token_provider):
            raise TypeError(f"token_provider is called for a token, but it is a {type(token_provider).__name__}")
        texts = {name: str(value) if isinstance(value, Path) else value for name, value in settings.items()}
        check_names(texts)
        values = SettingValues(texts)
        named = values.text(PROTOCOL).upper() or "PLAINTEXT"
        if named not in SecurityProtocol.__members__:
            raise ValueError(f"{PROTOCOL} is one of {', '.join(SecurityProtocol.__members__)}, not {named}")
        protocol = SecurityProtocol[named]
        if not values.text(PROTOCOL):
            _check_protocol_is_meant(values, texts)
        return cls(
            protocol,
            Tls.of(values) if protocol.has_tls else None,
            Sasl.of(values, token_provider) if protocol.has_sasl else None,
        )


def _check_protocol_is_meant(values: SettingValues, settings: Mapping[str, str | Secret]) -> None:
    """Credentials without a protocol would be ignored: that is a mistake which is hard to find."""
    if values.name_of("sasl.mechanism", "sasl.mechanisms", "sasl.jaas.config", "sasl.username"):
        raise ValueError(f"the settings have credentials but no {PROTOCOL}: set SASL_SSL (or SASL_PLAINTEXT)")
    if values.name_of(*(name for name in settings if name.startswith("ssl."))):
        raise ValueError(f"the settings have certificates but no {PROTOCOL}: set SSL or SASL_SSL")


def as_security(given: Security | Mapping[str, str | Secret] | None) -> Security | None:
    """Return the `security` parameter of a client as a value: settings are read; PLAINTEXT is None."""
    if given is not None and not isinstance(given, Security | Mapping):
        raise TypeError(f"security is a mapping of Kafka's settings, or Security.of(...), not {type(given).__name__}")
    found = Security.of(given) if isinstance(given, Mapping) else given
    return None if found is None or found.protocol is SecurityProtocol.PLAINTEXT else found
