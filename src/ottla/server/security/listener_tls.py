"""ListenerTls: the TLS of one listener: its certificate, the clients that it trusts, and the names of its clients.

A certificate is replaced without a restart: when the settings of the listener change, and when one of its files does.
New connections use the new one; existing connections are not touched. If the new one cannot be used, the old one stays,
but not at the start of a node whose metadata names other authorities or asks more of clients: then the listener refuses
all clients until the settings can be used.
A keystore with several keys has a context for each, of which a client gets the one that it asks for (`named_contexts`).
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ottla.client.errors import AuthenticationError
from ottla.client.security.context import allow, context_of, entries_of, show, stamp_of, trust
from ottla.client.security.key_entries import KeyEntry
from ottla.client.security.stores import is_pem_file
from ottla.client.security.tls import Store, Tls
from ottla.client.security.values import SettingValues
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.setting import Setting, render
from ottla.model.settings.security import (
    SSL_ALLOW_DN_CHANGES,
    SSL_ALLOW_SAN_CHANGES,
    SSL_CIPHER_SUITES,
    SSL_ENABLED_PROTOCOLS,
    SSL_ENDPOINT_IDENTIFICATION_ALGORITHM,
    SSL_KEY_PASSWORD,
    SSL_KEYSTORE_CERTIFICATE_CHAIN,
    SSL_KEYSTORE_KEY,
    SSL_KEYSTORE_LOCATION,
    SSL_KEYSTORE_PASSWORD,
    SSL_KEYSTORE_TYPE,
    SSL_PRINCIPAL_MAPPING_RULES,
    SSL_TRUSTSTORE_CERTIFICATES,
    SSL_TRUSTSTORE_LOCATION,
    SSL_TRUSTSTORE_PASSWORD,
    SSL_TRUSTSTORE_TYPE,
)
from ottla.security.distinguished_names import subject_of
from ottla.security.java_regex.syntax import InvalidRule
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.ssl_principal import SslPrincipalRules
from ottla.server.security.certificate_changes import CertificateNames, check_handshake, check_names, names_in
from ottla.server.security.certificate_watch import CertificateWatch
from ottla.server.security.guarded_tls import GuardedContext
from ottla.server.security.named_contexts import NamedContexts

log = logging.getLogger(__name__)

# The settings that a TLS context is made of, for a listener and for connections to one.
_CONTEXT_SETTINGS: tuple[Setting[Any], ...] = (
    SSL_CIPHER_SUITES,
    SSL_ENABLED_PROTOCOLS,
    SSL_ENDPOINT_IDENTIFICATION_ALGORITHM,
    SSL_KEY_PASSWORD,
    SSL_KEYSTORE_CERTIFICATE_CHAIN,
    SSL_KEYSTORE_KEY,
    SSL_KEYSTORE_LOCATION,
    SSL_KEYSTORE_PASSWORD,
    SSL_KEYSTORE_TYPE,
    SSL_TRUSTSTORE_CERTIFICATES,
    SSL_TRUSTSTORE_LOCATION,
    SSL_TRUSTSTORE_PASSWORD,
    SSL_TRUSTSTORE_TYPE,
)
_STORES = ((SSL_KEYSTORE_TYPE, SSL_KEYSTORE_LOCATION), (SSL_TRUSTSTORE_TYPE, SSL_TRUSTSTORE_LOCATION))
_CLIENT_AUTH = {"required": ssl.CERT_REQUIRED, "requested": ssl.CERT_OPTIONAL, "none": ssl.CERT_NONE}


class _Made(NamedTuple):
    """What the settings and their files became."""

    tls: Tls
    stamp: tuple[object, ...]  # of the files
    contexts: NamedContexts
    names: list[CertificateNames]
    client: ssl.SSLContext | None  # with which this node connects to others; None if it is not to be proven


class ListenerTls:
    def __init__(self, listener: str, config: Config, client_auth: str, *, is_between_brokers: bool = False) -> None:
        """If the settings do not allow a TLS listener, `check` says so. `client_auth`: whether clients must show a
        certificate (`required`), may (`requested`), or are not asked (`none`). `is_between_brokers`: brokers connect to
        each other by this listener, with the same settings.
        """
        self._listener = listener
        self._is_between_brokers = is_between_brokers
        self._made_of = ssl_values(config), client_auth
        self._now: _Made | None = None  # None: all clients are refused
        self._problem = ""  # why the newest settings or files cannot be used, as it was logged
        self._was_usable = True
        try:
            self._now = self._make(config, client_auth)
        except ApiError as error:
            self._problem, self._was_usable = error.text, False
        self._watch = CertificateWatch(listener)
        try:
            self._rules = SslPrincipalRules(config[SSL_PRINCIPAL_MAPPING_RULES])
        except InvalidRule as error:
            problem = f"listener {listener}: {SSL_PRINCIPAL_MAPPING_RULES.name}: {error}"
            raise ApiError(ErrorCode.INVALID_CONFIG, problem) from None

    @property
    def context(self) -> ssl.SSLContext:
        """The context with which a handshake begins; it hands over to another one if the client names its host."""
        return GuardedContext() if self._now is None else self._now.contexts.default

    def check(self) -> None:
        """Raise INVALID_CONFIG if no settings could be used so far."""
        if not self._was_usable:
            raise ApiError(ErrorCode.INVALID_CONFIG, self._problem)

    def principal_in(self, certificate: bytes | None) -> Principal:
        """Return the principal that a client's certificate (DER) names; ANONYMOUS if it showed none.

        Raise NoMatchingRule or ValueError if the certificate names no principal.
        """
        if not certificate:
            return ANONYMOUS
        return Principal.user(self._rules.name_of(subject_of(certificate)))

    def look_at_time(self, now_ms: int) -> None:
        """Warn of certificates that have expired or are about to; it reads files, so a worker does it."""
        if self._now is not None:
            self._watch.look(self._now.tls, self._now.stamp, now_ms)

    def refresh(self, config: Config, client_auth: str) -> None:
        """Make the context anew if the settings or the files have changed, or keep the old one; it reads files, so a
        worker does it.
        """
        try:
            self._follow(config, client_auth)
        except ApiError as error:  # the next refresh tries again: a file may be missing, or half written
            self.keep(error)

    def take_over(self, config: Config, client_auth: str) -> None:
        """Follow the settings of the metadata when the node starts; it reads files, so a worker does it.

        If they cannot be used, the certificate of the properties file is shown, but nobody is let in by its authorities
        instead of those of the metadata.
        """
        values, asked = self._made_of
        try:
            self._follow(config, client_auth)
        except ApiError as error:
            is_same = (_without_keystore(values), asked) == (_without_keystore(ssl_values(config)), client_auth)
            (self.keep if is_same else self.close)(error)

    def keep(self, error: ApiError) -> None:
        """Log, once, that the newest settings or files cannot be used."""
        if error.text != self._problem:
            self._problem = error.text
            if self._now is None:
                log.error("listener %s refuses all clients: %s", self._listener, error.text)
            else:
                log.error("listener %s keeps its old certificate: %s", self._listener, error.text)

    def close(self, error: ApiError) -> None:
        """Refuse all clients until settings can be used."""
        self._now = None
        self.keep(error)

    def _follow(self, config: Config, client_auth: str) -> None:
        """Raise INVALID_CONFIG if the settings or files cannot be used."""
        values = ssl_values(config), client_auth
        if self._now is not None and values == self._made_of and stamp_of(self._now.tls) == self._now.stamp:
            self._problem = ""
            return
        self._now = self._make(config, client_auth)
        self._made_of, self._problem, self._was_usable = values, "", True
        log.info("listener %s has a new certificate or new TLS settings", self._listener)

    def check_change(self, present: Config, new: Config, client_auth: str) -> None:
        """Raise INVALID_REQUEST unless the listener may get these settings; it reads files, so a worker does it."""
        if ssl_values(new) == ssl_values(present):
            return
        now, problem = self._now, ""
        try:
            trusted = SSL_TRUSTSTORE_LOCATION
            if present[trusted] and not new[trusted] and new.is_set(trusted):
                raise ValueError(f"{trusted.name} is empty, by which anybody would be trusted whom the system trusts")
            made = self._make(new, client_auth)
            if now is None:
                return
            check_names(
                now.names,
                made.names,
                other_subject=present[SSL_ALLOW_DN_CHANGES],
                fewer_alternatives=present[SSL_ALLOW_SAN_CHANGES],
            )
            if now.client is not None and made.client is not None:
                check_handshake(now.contexts.default, made.client)
                check_handshake(made.contexts.default, now.client)
        except ApiError as error:
            problem = error.text
        except ValueError as error:
            problem = f"listener {self._listener}: {error}"
        if problem:
            raise ApiError(ErrorCode.INVALID_REQUEST, problem)

    def _make(self, config: Config, client_auth: str) -> _Made:
        """Read the files. The stamp is older than what was read, so that a file that is replaced meanwhile is read
        again. Raise INVALID_CONFIG.
        """
        try:
            tls = Tls.of(SettingValues(ssl_values(config)))
            if tls.certificate is None:
                raise ValueError(
                    "ssl.keystore.location is not set: a TLS listener needs a certificate and its key (PEM)"
                )
            _check_types(config)
            stamp = stamp_of(tls)
            entries = entries_of(tls.certificate, tls)
            contexts = [(each.names, _context(tls, tls.certificate, each, client_auth)) for each in entries]
            names = [names_in(each.pem) for each in entries]
            # The name of a host says nothing about whether nodes trust each other.
            proves = self._is_between_brokers and tls.trusted is not None
            client = context_of(replace(tls, check_host=False)) if proves else None
        except (ValueError, AuthenticationError) as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"listener {self._listener}: {error}") from None
        return _Made(tls, stamp, NamedContexts(contexts), names, client)


def ssl_values(config: Config) -> Mapping[str, str]:
    """Return the settings `ssl.*` of a listener as texts; those without a value are left out."""
    texts = {each.name: render(config[each]) for each in _CONTEXT_SETTINGS}
    return {name: text for name, text in texts.items() if text is not None}


def _without_keystore(values: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that decide who is let in, and how, without those of the node's own certificate."""
    own = ("ssl.keystore.", SSL_KEY_PASSWORD.name)
    return {name: text for name, text in values.items() if not name.startswith(own)}


def _check_types(config: Config) -> None:
    """Raise ValueError if a file is not of the type that is set for it, which Kafka could not read. Without a type the
    file itself tells; a store of the type JKS may be PKCS #12, as in Java.
    """
    for type, location in _STORES:
        path = config[location]
        if path and config.is_set(type):
            kind, is_pem = (config[type] or "").upper(), is_pem_file(path)
            if is_pem is not None and is_pem != (kind == "PEM"):
                raise ValueError(f"{type.name} is {kind}, but {path} is {'a' if is_pem else 'no'} PEM file")


def _context(tls: Tls, store: Store, entry: KeyEntry, client_auth: str) -> ssl.SSLContext:
    """Return the context that shows the certificate of one entry of the keystore."""
    context = GuardedContext()
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.verify_mode = _CLIENT_AUTH[client_auth]
    allow(context, tls)
    show(context, store, tls, entry)
    if tls.trusted is not None:
        trust(context, tls.trusted)
    elif context.verify_mode != ssl.CERT_NONE:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    return context
