"""SecurityProtocol: how the connections of a listener are protected, with Kafka's numbers."""

from __future__ import annotations

from enum import IntEnum


class SecurityProtocol(IntEnum):
    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


def authenticates(protocol: SecurityProtocol, client_auth: str) -> bool:
    """Return whether every client of such a listener has to prove who it is."""
    return protocol.has_sasl or (protocol.has_tls and client_auth == "required")
