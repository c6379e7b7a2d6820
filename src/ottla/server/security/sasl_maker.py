"""SaslMaker: makes the SASL mechanisms of a listener, as its settings say. It changes nothing, so that settings can be
tried, in a worker.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.settings.sasl import (
    CONNECTIONS_MAX_REAUTH_MS,
    SASL_ENABLED_MECHANISMS,
    SASL_JAAS_CONFIG,
    SASL_MECHANISM_INTER_BROKER_PROTOCOL,
    SASL_SERVER_CALLBACK_HANDLER_CLASS,
)
from ottla.security.sasl.exchange import Authenticated
from ottla.security.sasl.gssapi import GSSAPI
from ottla.security.sasl.jaas import InvalidJaas, LoginModule, parse_jaas_line, plain_users
from ottla.security.sasl.login_modules import check_login_module
from ottla.security.sasl.oauthbearer import OAUTHBEARER
from ottla.security.sasl.plain import PLAIN, PlainServer, check_against
from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS, ScramMechanism
from ottla.security.sasl.scram.server import ScramServer
from ottla.server.loop.runtime import Runtime
from ottla.server.security.authentication import Conversation, ServedMechanism
from ottla.server.security.credentials import Credentials
from ottla.server.settings.endpoints import inter_broker_listener
from ottla.server.settings.listener_config import ignored_jaas_lines, jaas_line, listener_config, login_mechanism

if TYPE_CHECKING:  # imported only for listeners that need it
    from ottla.server.security.listener_oauth import ListenerOauth

log = logging.getLogger(__name__)
_NONCE_BITS = 128
_PACKAGE: Final = "org.apache.kafka.common.security"
_SCRAM_HANDLER: Final = f"{_PACKAGE}.scram.internals.ScramServerCallbackHandler"
# Kafka's own classes that check clients do what this node does without them; those of OAUTHBEARER are told apart by
# `listener_oauth.py`.
_HANDLERS: Final[Mapping[str, str]] = {
    PLAIN: f"{_PACKAGE}.plain.internals.PlainServerCallbackHandler",
    "SCRAM-SHA-256": _SCRAM_HANDLER,
    "SCRAM-SHA-512": _SCRAM_HANDLER,
    GSSAPI: f"{_PACKAGE}.authenticator.SaslServerCallbackHandler",
}


class _InWorker:
    """A conversation whose answers take milliseconds, so that workers find them."""

    def __init__(self, server: ScramServer, runtime: Runtime) -> None:
        self._server = server
        self._runtime = runtime

    @property
    def claimed(self) -> str:
        return self._server.claimed

    def respond(self, message: bytes) -> Awaitable[bytes | Authenticated]:
        return self._runtime.in_worker(self._server.respond, message)


class ServedSasl(NamedTuple):
    """What the settings became."""

    config: Config
    mechanisms: Mapping[str, ServedMechanism]
    oauth: ListenerOauth | None  # None: OAUTHBEARER is not served


class SaslMaker:
    def __init__(self, listener: str, runtime: Runtime, credentials: Credentials) -> None:
        self._listener = listener
        self._runtime = runtime
        self._credentials = credentials
        self._warned: set[tuple[str, str]] = set()  # JAAS lines that are ignored, by mechanism

    def parts(self, node: NodeConfig, earlier: ListenerOauth | None) -> tuple[ServedSasl, ApiError | None]:
        """Return what can be served with the settings, and why the rest cannot (INVALID_CONFIG). `earlier` is the
        present OAUTHBEARER, whose keys are used on if they are still the right ones.
        """
        try:
            config = listener_config(node, self._listener)
        except ApiError as error:
            return ServedSasl(node.broker, {}, None), error
        mechanisms: dict[str, ServedMechanism] = {}
        problems: list[str] = []
        oauth: ListenerOauth | None = None
        names = dict.fromkeys(name.upper() for name in config[SASL_ENABLED_MECHANISMS])
        for name in names:
            try:
                lasts_ms = max(listener_config(node, self._listener, name)[CONNECTIONS_MAX_REAUTH_MS], 0)
                if name == OAUTHBEARER:
                    oauth = self._oauthbearer(node, earlier)
                    begin: Callable[[], Conversation] = oauth.new_conversation
                else:
                    begin = self._mechanism(name, node)
            except ApiError as error:
                problems.append(error.text)
            else:
                mechanisms[name] = ServedMechanism(begin, lasts_ms)
        if not names:
            problems.append(self._invalid("sasl.enabled.mechanisms is empty").text)
        problem = ApiError(ErrorCode.INVALID_CONFIG, "; ".join(problems)) if problems else None
        return ServedSasl(config, mechanisms, oauth), problem

    def _mechanism(self, name: str, node: NodeConfig) -> Callable[[], Conversation]:
        handler = listener_config(node, self._listener, name)[SASL_SERVER_CALLBACK_HANDLER_CLASS]
        if handler and handler != _HANDLERS.get(name, handler):
            setting = SASL_SERVER_CALLBACK_HANDLER_CLASS.name
            raise self._invalid(f"{setting} of {name} names Java code, which cannot be run: {handler}")
        if name in SCRAM_MECHANISMS:
            self._optional_login(name, node)
            return partial(self._scram, SCRAM_MECHANISMS[name])
        if name == PLAIN:
            return partial(PlainServer, check_against(plain_users([self._login(name, node)])))
        if name == GSSAPI:
            return self._gssapi(node)
        known = ", ".join((PLAIN, *SCRAM_MECHANISMS, OAUTHBEARER, GSSAPI))
        raise self._invalid(f"the SASL mechanism {name} is not served (those that are: {known})")

    def _scram(self, mechanism: ScramMechanism) -> Conversation:
        nonce = b64encode(self._runtime.rng.getrandbits(_NONCE_BITS).to_bytes(_NONCE_BITS // 8, "big")).decode()
        secret, iterations = self._credentials.of_unknown_users()
        server = ScramServer(mechanism, nonce, secret, partial(self._credentials.scram, mechanism), iterations)
        return _InWorker(server, self._runtime) if self._credentials.derives else server

    def _oauthbearer(self, node: NodeConfig, earlier: ListenerOauth | None) -> ListenerOauth:
        from ottla.server.security.listener_oauth import ListenerOauth

        login = self._optional_login(OAUTHBEARER, node)
        options = {} if login is None else login.options
        config = listener_config(node, self._listener, OAUTHBEARER)
        try:
            return ListenerOauth(self._listener, self._runtime, config, options, earlier)
        except ValueError as error:
            raise self._invalid(f"{OAUTHBEARER}: {error}") from None

    def _gssapi(self, node: NodeConfig) -> Callable[[], Conversation]:
        from ottla.client.security.kerberos_package import require_kerberos_package

        login = self._login(GSSAPI, node)
        try:
            require_kerberos_package()
            from ottla.server.security.listener_gssapi import ListenerGssapi

            config = listener_config(node, self._listener, GSSAPI)
            return ListenerGssapi(config, login, self._runtime).new_conversation
        except ValueError as error:
            raise self._invalid(f"{GSSAPI}: {error}") from None

    def _login(self, mechanism: str, node: NodeConfig) -> LoginModule:
        login = self._optional_login(mechanism, node)
        if login is None:
            name = f"listener.name.{self._listener.lower()}.{mechanism.lower()}.{SASL_JAAS_CONFIG.name}"
            raise self._invalid(f"{name} is not set, and {mechanism} needs it")
        return login

    def _optional_login(self, mechanism: str, node: NodeConfig) -> LoginModule | None:
        line = jaas_line(node, self._listener, mechanism)
        if not line:
            self._warn_of_ignored_lines(mechanism, node)
            return None
        try:
            module = parse_jaas_line(line)
            check_login_module(mechanism, module, logs_in=self._logs_in(mechanism, node))
            return module
        except InvalidJaas as error:
            raise self._invalid(f"{mechanism.lower()}.{SASL_JAAS_CONFIG.name}: {error}") from None

    def _warn_of_ignored_lines(self, mechanism: str, node: NodeConfig) -> None:
        for name in ignored_jaas_lines(node, self._listener):
            if (mechanism, name) not in self._warned:
                self._warned.add((mechanism, name))
                log.warning(
                    "listener %s: %s is ignored, as Kafka ignores it: a JAAS line belongs to one mechanism, under the "
                    "name listener.name.%s.%s.%s",
                    self._listener,
                    name,
                    self._listener.lower(),
                    mechanism.lower(),
                    SASL_JAAS_CONFIG.name,
                )

    def _logs_in(self, mechanism: str, node: NodeConfig) -> bool:
        """Return whether this node logs in to other brokers by this listener with the mechanism."""
        chosen = login_mechanism(node, self._listener, SASL_MECHANISM_INTER_BROKER_PROTOCOL)
        return chosen == mechanism and inter_broker_listener(node.broker) == self._listener

    def _invalid(self, text: str) -> ApiError:
        return ApiError(ErrorCode.INVALID_CONFIG, f"listener {self._listener}: {text}")
