"""Settings that name Java classes which decide who a client is, or what TLS does.

Java code cannot be run here. Kafka's own classes do what this node does without them; with any other class the node
would do something else than its settings ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import declared
from ottla.model.setting import Setting
from ottla.model.settings.sasl import (
    SASL_CLIENT_CALLBACK_HANDLER_CLASS,
    SASL_LOGIN_CALLBACK_HANDLER_CLASS,
    SASL_LOGIN_CLASS,
)
from ottla.model.settings.security import PRINCIPAL_BUILDER_CLASS, SECURITY_PROVIDERS, SSL_ENGINE_FACTORY_CLASS

_PACKAGE: Final = "org.apache.kafka.common.security"
# Kafka's classes by setting, for all mechanisms. Those that check clients are told apart by mechanism, where they are
# used (`security/sasl_maker.py`, `security/listener_oauth.py`).
_KAFKA: Final[Mapping[Setting[str | None], tuple[str, ...]]] = {
    PRINCIPAL_BUILDER_CLASS: (f"{_PACKAGE}.authenticator.DefaultKafkaPrincipalBuilder",),
    SSL_ENGINE_FACTORY_CLASS: (f"{_PACKAGE}.ssl.DefaultSslEngineFactory",),
    SECURITY_PROVIDERS: (),
    SASL_LOGIN_CLASS: (
        f"{_PACKAGE}.authenticator.DefaultLogin",
        f"{_PACKAGE}.kerberos.KerberosLogin",
        f"{_PACKAGE}.oauthbearer.internals.OAuthBearerRefreshingLogin",
    ),
    SASL_LOGIN_CALLBACK_HANDLER_CLASS: (
        f"{_PACKAGE}.authenticator.AbstractLogin$DefaultLoginCallbackHandler",
        f"{_PACKAGE}.kerberos.KerberosClientCallbackHandler",
        f"{_PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler",
        f"{_PACKAGE}.oauthbearer.secured.OAuthBearerLoginCallbackHandler",  # its name before Kafka 4.0
        f"{_PACKAGE}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
    ),
    SASL_CLIENT_CALLBACK_HANDLER_CLASS: (
        f"{_PACKAGE}.authenticator.SaslClientCallbackHandler",
        f"{_PACKAGE}.kerberos.KerberosClientCallbackHandler",
        f"{_PACKAGE}.oauthbearer.internals.OAuthBearerSaslClientCallbackHandler",
    ),
}


def foreign_classes(values: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong, one line for each setting, also of those with the prefix of a listener."""
    for name, text in values.items():
        known = _KAFKA.get(setting) if (setting := declared(name, BROKER_SETTINGS)) is not None else None
        if known is None or not text.strip() or text.strip() in known:
            continue
        accepted = f" (only {' or '.join(known)} is)" if len(known) == 1 else ""
        yield f"{name} names Java code, which cannot be run{accepted}: {text.strip()}"
