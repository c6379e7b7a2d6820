"""Sasl: with which mechanism a client authenticates, and as whom."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from ottla.client.errors import AuthenticationError
from ottla.client.security.secret import Secret
from ottla.client.security.stores import reveal
from ottla.client.security.tls import Tls
from ottla.client.security.tokens import (
    TokenEndpoint,
    TokenFile,
    TokenFunction,
    TokenPatience,
    TokenSource,
    UnsecuredToken,
)
from ottla.client.security.values import SettingValues
from ottla.security.sasl.exchange import ClientExchange
from ottla.security.sasl.jaas import (
    KERBEROS_MODULE,
    OAUTHBEARER_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    InvalidJaas,
    LoginModule,
    parse_jaas_line,
)
from ottla.security.sasl.kerberos_login import SERVICE_NAME, KerberosLogin
from ottla.security.sasl.oauthbearer import OauthClient
from ottla.security.sasl.plain import PlainClient
from ottla.security.sasl.scram.client import ScramClient
from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER, GSSAPI)
_MODULES: Final = {
    PLAIN: PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    OAUTHBEARER: OAUTHBEARER_MODULE,
}
_NONCE_BYTES: Final = 24
_CLAIM: Final = "unsecuredLoginStringClaim_"
_EXTENSION: Final = "extension_"
# Kafka's defaults, as soon as one of the two settings is given.
_RETRY_BACKOFF_S: Final = 0.1
_RETRY_BACKOFF_MAX_S: Final = 10.0
_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"


@dataclass(frozen=True, slots=True)
class Sasl:
    """The client's credentials. `is_token`: they are the id and the HMAC of a delegation token."""

    mechanism: str
    username: str = ""
    password: Secret | None = None
    is_token: bool = False
    tokens: TokenSource | None = None
    extensions: tuple[tuple[str, str], ...] = ()
    kerberos: KerberosLogin | None = None

    @classmethod
    def of(cls, values: SettingValues, token_provider: Callable[[], str] | None = None) -> Sasl:
        """Read the settings `sasl.*`; raise ValueError if one is wrong or missing."""
        mechanism = values.text("sasl.mechanism", "sasl.mechanisms").upper()
        other = values.text("sasl.mechanisms").upper()
        if other and other != mechanism:
            raise ValueError(f"sasl.mechanism is {mechanism}, and sasl.mechanisms is {other}: give one of them")
        if mechanism not in MECHANISMS:
            given = f"not {mechanism}" if mechanism else "and it is not set"
            raise ValueError(f"sasl.mechanism is one of {', '.join(MECHANISMS)}, {given}")
        if token_provider is not None and mechanism != OAUTHBEARER:
            raise ValueError(f"token_provider is for OAUTHBEARER, and sasl.mechanism is {mechanism}")
        if mechanism == GSSAPI:
            login = _kerberos_login(values)
            return cls(mechanism, login.principal, kerberos=login)
        options = _jaas_options(values, mechanism)
        if mechanism == OAUTHBEARER:
            extensions = [
                (name.removeprefix(_EXTENSION), value) for name, value in options.items() if name.startswith(_EXTENSION)
            ]
            return cls(mechanism, tokens=_token_source(values, options, token_provider), extensions=tuple(extensions))
        username, password = user_and_password(values, options)
        if not username or password == Secret(""):
            raise ValueError(
                f"{mechanism} needs a user and a password: set sasl.jaas.config, or sasl.username and sasl.password"
            )
        return cls(mechanism, username, password, is_token=options.get("tokenauth", "").lower() == "true")

    def exchange(self, host: str) -> ClientExchange:
        """Begin an exchange with a broker of this name. It may ask for a token or a ticket, so callers with an event
        loop call it in a thread.
        """
        if self.kerberos is not None:
            from ottla.client.security.kerberos import begin_exchange  # loaded by `_kerberos_login` already

            return begin_exchange(self.kerberos, host)
        token = "" if self.tokens is None else self.tokens.token()
        password = reveal(self.password, "sasl.password")
        try:
            if self.mechanism == OAUTHBEARER:
                return OauthClient(token, dict(self.extensions))
            if self.mechanism == PLAIN:
                return PlainClient(self.username, password)
            extensions = {"tokenauth": "true"} if self.is_token else None
            mechanism = SCRAM_MECHANISMS[self.mechanism]
            return ScramClient(mechanism, self.username, password, secrets.token_urlsafe(_NONCE_BYTES), extensions)
        except ValueError as error:
            raise AuthenticationError(str(error)) from None


def user_and_password(values: SettingValues, options: Mapping[str, str] | None = None) -> tuple[str, Secret]:
    """Return the user and the password of the settings; `options` are those of the login module, if they are known."""
    options = _jaas_options(values) if options is None else options
    own = values.name_of("sasl.username", "sasl.password")
    if own is not None and values.name_of("sasl.jaas.config"):
        raise ValueError(f"{own} and sasl.jaas.config both say who logs in: give one of them")
    username = values.text("sasl.username") or options.get("username", "")
    return username, values.secret("sasl.password") or Secret(options.get("password", ""))


def _jaas_options(values: SettingValues, mechanism: str | None = None) -> Mapping[str, str]:
    module = _jaas_module(values)
    if module is None:
        return {}
    if module.name == KERBEROS_MODULE:
        raise ValueError(f"sasl.jaas.config: the login module of Kerberos belongs to sasl.mechanism {GSSAPI}")
    expected = _MODULES.get(mechanism or "", "")
    if not module.name.endswith(expected):  # libraries that carry Kafka's client in them put a word before its name
        raise ValueError(f"sasl.jaas.config: the login module of sasl.mechanism {mechanism} is {expected}")
    return module.options


def _jaas_module(values: SettingValues) -> LoginModule | None:
    text = values.revealed("sasl.jaas.config")
    try:
        return parse_jaas_line(text) if text else None
    except InvalidJaas as error:
        raise ValueError(f"sasl.jaas.config: {error}") from None


def _kerberos_login(values: SettingValues) -> KerberosLogin:
    """Read the settings of Kafka, or librdkafka's names of keytab and principal."""
    from ottla.client.security.kerberos_package import require_kerberos_package

    login = KerberosLogin.of(_jaas_module(values), values.text(SERVICE_NAME))
    keytab = values.text("sasl.kerberos.keytab")
    if keytab:
        login = login._replace(keytab=keytab, uses_keytab=True)
    try:
        require_kerberos_package()
    except ValueError as error:
        raise ValueError(f"sasl.mechanism {GSSAPI}: {error}") from None
    import ottla.client.security.kerberos  # noqa: F401  # here, and not in the thread of `Sasl.exchange`

    return login._replace(principal=login.principal or values.text("sasl.kerberos.principal"))


def _patience(values: SettingValues) -> TokenPatience:
    most_s = _seconds(values, "sasl.login.retry.backoff.max.ms")
    backoff_s = _seconds(values, "sasl.login.retry.backoff.ms")
    if most_s is not None and backoff_s is None:
        backoff_s = _RETRY_BACKOFF_S
    return TokenPatience(
        _seconds(values, "sasl.login.connect.timeout.ms"),
        _seconds(values, "sasl.login.read.timeout.ms"),
        backoff_s,
        _RETRY_BACKOFF_MAX_S if most_s is None else most_s,
    )


def _seconds(values: SettingValues, name: str) -> float | None:
    text = values.text(name)
    if text and (not text.isdecimal() or not int(text)):
        raise ValueError(f"{name} is a number of milliseconds above 0, not {text[:100]!r}")
    return int(text) / 1000 if text else None


def _token_source(values: SettingValues, options: Mapping[str, str], provider: Callable[[], str] | None) -> TokenSource:
    if provider is not None:
        return TokenFunction(provider)
    if values.text(_RETRIEVER).endswith(".JwtBearerJwtRetriever"):
        raise ValueError(f"{_RETRIEVER}: this client does not exchange assertions for tokens (JwtBearerJwtRetriever)")
    url = values.text("sasl.oauthbearer.token.endpoint.url")
    if url:
        parts = urlsplit(url)
        if parts.scheme == "file":
            return TokenFile(unquote(parts.path))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"sasl.oauthbearer.token.endpoint.url is an http, https or file URL, not {url!r}")
        client_id = values.text("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id")
        secret = values.secret(
            "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret"
        ) or Secret(options.get("clientSecret", ""))
        client_id = client_id or options.get("clientId", "")
        if not client_id or secret == Secret(""):
            raise ValueError(
                "a token endpoint needs sasl.oauthbearer.client.credentials.client.id and "
                "sasl.oauthbearer.client.credentials.client.secret (or clientId and clientSecret in sasl.jaas.config)"
            )
        scope = values.text("sasl.oauthbearer.scope") or options.get("scope", "")
        own = {name: value for name, value in options.items() if name.startswith("ssl.")}
        tls = Tls.of(SettingValues(own)) if own else None
        return TokenEndpoint(url, client_id, secret, scope, tls, _patience(values))
    claims = tuple((name.removeprefix(_CLAIM), text) for name, text in options.items() if name.startswith(_CLAIM))
    if any(name == "sub" for name, _ in claims):
        return UnsecuredToken(claims, int(options.get("unsecuredLoginLifetimeSeconds", "3600")))
    raise ValueError("OAUTHBEARER needs a source of tokens: sasl.oauthbearer.token.endpoint.url, or a token_provider")
