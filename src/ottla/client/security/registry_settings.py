"""The settings of a schema registry's client, with Confluent's names: credentials and `schema.registry.ssl.*`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote

from ottla.client.security.names import TLS_NAMES, WITHOUT_EFFECT
from ottla.client.security.sasl import user_and_password
from ottla.client.security.secret import Secret, UserAndPassword
from ottla.client.security.tls import Tls
from ottla.client.security.values import SettingValues

PREFIX: Final = "schema.registry."
_BASIC_SOURCE: Final = "basic.auth.credentials.source"
_BASIC: Final = "basic.auth.user.info"
_BEARER_SOURCE: Final = "bearer.auth.credentials.source"
_BEARER: Final = "bearer.auth.token"
_NAMES: Final = (_BASIC_SOURCE, _BASIC, _BEARER_SOURCE, _BEARER)
REGISTRY_NAMES: Final = frozenset({*_NAMES, *(f"{PREFIX}{name}" for name in (*_NAMES, *TLS_NAMES))})


class RegistrySecurity(NamedTuple):
    """`auth` is `user:password`, `token` a bearer token."""

    auth: Secret | None = None
    token: Secret | None = None
    tls: Tls | None = None

    def headers(self, url: SplitResult) -> dict[str, str]:
        """Return the headers of a request that say who asks. What is in the URL counts first."""
        auth = self._user_and_password(url)
        if auth:
            return {"Authorization": "Basic " + base64.b64encode(auth.encode()).decode()}
        token = "" if self.token is None else self.token.reveal()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def user(self, url: SplitResult) -> str | None:
        """Return the user as whom requests log in with a password; None without one."""
        return self._user_and_password(url).partition(":")[0] or None

    def _user_and_password(self, url: SplitResult) -> str:
        if url.username:
            return f"{unquote(url.username)}:{unquote(url.password or '')}"
        return "" if self.auth is None else self.auth.reveal()


def is_registry_name(name: str) -> bool:
    """Return whether a setting is one of a registry's client."""
    return name.startswith((PREFIX, *_NAMES))


def registry_security(
    settings: Mapping[str, str | Secret], kafka: Mapping[str, str | Secret] | None = None
) -> RegistrySecurity:
    """Read the settings of a registry's client; the prefix may be left out, except before `ssl`. `kafka` are the
    settings of the cluster's client, whose user SASL_INHERIT means. Raises ValueError if one is wrong or unknown.
    """
    own: dict[str, str | Secret] = {}
    for name, value in settings.items():
        short = name.removeprefix(PREFIX)
        known = short in _NAMES or (short in TLS_NAMES | WITHOUT_EFFECT and short != name)
        if not known:
            raise ValueError(f"{name}: there is no such setting of a schema registry's client")
        own[short] = value
    values = SettingValues(own)
    tls = Tls.of(values) if any(name in TLS_NAMES for name in own) else None
    return RegistrySecurity(_auth(values, kafka or {}), _token(values), tls)


def _auth(values: SettingValues, kafka: Mapping[str, str | Secret]) -> Secret | None:
    source = values.text(_BASIC_SOURCE).upper() or ("USER_INFO" if values.name_of(_BASIC) else "URL")
    if source == "URL":
        return None  # it is in the URL, or there is none
    if source == "USER_INFO":
        if values.name_of(_BASIC) is None:
            raise ValueError(f"{_BASIC_SOURCE}=USER_INFO needs {_BASIC} (user:password)")
        auth = values.secret(_BASIC)
        if auth is not None and auth.is_literal and ":" not in auth.reveal():
            raise ValueError(f"{_BASIC} is USER:PASSWORD, and this value has no colon")
        return auth
    if source == "SASL_INHERIT":
        user, password = user_and_password(SettingValues(kafka))
        if not user:
            raise ValueError(f"{_BASIC_SOURCE}=SASL_INHERIT needs a user of SASL: sasl.jaas.config, or sasl.username")
        return UserAndPassword(user, password)
    raise ValueError(f"{_BASIC_SOURCE} is one of URL, USER_INFO, SASL_INHERIT, not {source}")


def _token(values: SettingValues) -> Secret | None:
    source = values.text(_BEARER_SOURCE).upper()
    if source not in ("", "STATIC_TOKEN"):
        raise ValueError(f"{_BEARER_SOURCE} is STATIC_TOKEN, not {source}")
    if source and values.name_of(_BEARER) is None:
        raise ValueError(f"{_BEARER_SOURCE}=STATIC_TOKEN needs {_BEARER}")
    return values.secret(_BEARER)
