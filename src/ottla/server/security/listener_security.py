"""ListenerSecurity: how the connections of one listener are protected and authenticated."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.security.protocol import SecurityProtocol

if TYPE_CHECKING:  # imported only for listeners that need them
    from ottla.server.security.listener_sasl import ListenerSasl
    from ottla.server.security.listener_tls import ListenerTls


class ListenerSecurity(NamedTuple):
    protocol: SecurityProtocol
    tls: ListenerTls | None  # None: without TLS
    sasl: ListenerSasl | None  # None: without SASL
