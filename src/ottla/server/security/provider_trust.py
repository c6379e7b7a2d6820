"""Whom to trust as the identity provider: for brokers by listener, for a schema registry by its own settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client.security.tls import Tls
from ottla.client.security.values import SettingValues
from ottla.model.config import Config
from ottla.server.security.listener_tls import ssl_values

_TRUST: Final = "ssl.truststore."


def provider_tls(config: Config, options: Mapping[str, str] | None = None) -> Tls | None:
    """Return the TLS of connections to the provider: the options `ssl.*` of a login module, else the settings
    `ssl.truststore.*`; None for the authorities of the operating system. Raise ValueError.
    """
    own = {name: text for name, text in (options or {}).items() if name.startswith("ssl.")}
    trusted = {name: text for name, text in ssl_values(config).items() if name.startswith(_TRUST)}
    tls = Tls.of(SettingValues(own or trusted))
    return None if tls == Tls() else tls
