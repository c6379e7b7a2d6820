"""NodeSecurity: the security of a node: its listeners as they are set up now, access rules, logins and the audit log.

Listeners follow the settings of the metadata: before clients are let in (`take_over`), and at each change. What is made
of settings replaces the old as a whole; if it cannot be made, the old is kept, but not over a restart: then nobody is
let in whom only the properties file still knows (`listener_sasl.py`, `listener_tls.py`).

TLS and SASL are imported and set up only for listeners that use them, so a plain node starts as quickly as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.cluster.commands.delegation_tokens import secret_key_in
from ottla.cluster.entities import Change, ConfigChanged
from ottla.cluster.state import ClusterState
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.resources import ResourceType
from ottla.model.settings.sasl import OTTLA_SCRAM_UNKNOWN_USERS_SECRET, SASL_OAUTHBEARER_JWKS_ENDPOINT_URL
from ottla.security.protocol import SecurityProtocol
from ottla.server.loop.runtime import Runtime
from ottla.server.security.audit.sinks import audit_log
from ottla.server.security.authorization import Authorization
from ottla.server.security.exposure import warn_of_exposure
from ottla.server.security.listener_security import ListenerSecurity
from ottla.server.security.logins import Logins
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import inter_broker_listener
from ottla.server.settings.listener_config import client_auth, jaas_line, listener_config
from ottla.server.settings.listeners import ListenerAddress, security_protocols
from ottla.server.settings.metrics_listener import METRICS, has_secured_metrics

if TYPE_CHECKING:
    from ottla.server.security.credentials import Credentials
    from ottla.server.security.listener_oauth import ListenerOauth


class NodeSecurity:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        listeners: Sequence[ListenerAddress],
        state: Callable[[], ClusterState],
    ) -> None:
        """If a listener cannot be secured as the properties file says, `check` says so; the metadata may differ."""
        self._runtime = runtime
        self._configs = configs
        self._state = state
        protocols = security_protocols(configs.broker)
        self._listeners = {
            each.name: self._secured(each.name, SecurityProtocol[protocols[each.name]]) for each in listeners
        }
        if has_secured_metrics(configs.broker):
            self._listeners[METRICS] = self._secured(METRICS, SecurityProtocol.SSL)
        warn_of_exposure(configs.node, listeners)
        self.audit = audit_log(configs, runtime)  # None if it is off
        self.authorization = Authorization(configs.broker, self.audit)
        self.logins = Logins(self.audit)
        self._is_secured = any(each.tls is not None or each.sasl is not None for each in self._listeners.values())
        self._followed = configs.node  # the settings that the listeners follow
        self._is_starting = True
        # A file that cannot be read, on a remote disk, say, must not delay the removal of a user.
        self._following_sasl, self._following_tls = asyncio.Lock(), asyncio.Lock()

    def listener(self, name: str) -> ListenerSecurity:
        return self._listeners[name]

    def bearer_tokens(self, listener: str) -> ListenerOauth | None:
        """Return the check of tokens that come over HTTP to this listener, as its settings are now; None if it takes
        none. Raise INVALID_CONFIG for settings that are wrong.
        """
        from ottla.security.sasl.oauthbearer import OAUTHBEARER  # a node without tokens does not load what checks them

        config = listener_config(self._configs.node, listener, OAUTHBEARER)
        if not config[SASL_OAUTHBEARER_JWKS_ENDPOINT_URL]:
            return None
        from ottla.server.security.listener_oauth import bearer_tokens

        return bearer_tokens(listener, self._runtime, config, jaas_line(self._configs.node, listener, OAUTHBEARER))

    def check(self, *names: str) -> None:
        """Raise INVALID_CONFIG if a listener, of these or of all, cannot be secured."""
        for name in names or self._listeners:
            listener = self._listeners[name]
            if listener.tls is not None:
                listener.tls.check()
            if listener.sasl is not None:
                listener.sasl.check()

    def take_over(self) -> Awaitable[None] | None:
        """Follow the settings of the metadata, before clients are let in; None if there is nothing to wait for. Raise
        INVALID_CONFIG if a listener cannot be secured as they say, nor as the properties file says.
        """
        if self._is_secured and self._configs.node is not self._followed:
            return self._take_over()
        self.check()
        return None

    async def _take_over(self) -> None:
        await self.refresh()
        self.check()

    def started(self) -> None:
        """From now on what is in use stays in use when settings cannot be used."""
        self._is_starting = False

    def settings_changed(self) -> None:
        """Follow a change of the node's dynamic settings."""
        if self._is_secured:
            self._runtime.tasks.spawn(self.refresh())

    async def check_change(self, new: NodeConfig) -> None:
        """Raise INVALID_REQUEST unless the listeners can have these settings instead of the present ones."""
        present = self._configs.node
        for name, listener in self._listeners.items():
            if listener.sasl is not None:
                await self._runtime.in_worker(listener.sasl.check_change, present, new)
            if listener.tls is not None:
                try:
                    config = listener_config(new, name)
                except ApiError as error:
                    raise ApiError(ErrorCode.INVALID_REQUEST, error.text) from None
                try:
                    old = listener_config(present, name)
                except ApiError:  # it may have come from another implementation
                    old = present.broker
                asked = client_auth(new, name, listener.protocol)
                await self._runtime.in_worker(listener.tls.check_change, old, config, asked)

    def follow(self, changes: Iterable[Change]) -> None:
        """Look at the files again whenever a setting of a broker is written, also with its old value, as Kafka does."""
        if any(type(each) is ConfigChanged and each.resource.type == ResourceType.BROKER for each in changes):
            self.settings_changed()

    def look_at_own_login(self, state: ClusterState) -> None:
        """Warn if this node could not log in to its own listener; called when the metadata was read."""
        if any(each.sasl is not None for each in self._listeners.values()):
            from ottla.server.security.own_login import warn_of_missing_user

            warn_of_missing_user(self._configs.node, state)

    async def refresh(self) -> None:
        """Follow the settings, and look for new certificates and for new keys of tokens; called from time to time."""
        await self._refresh_sasl()
        await self._refresh_tls()

    async def _refresh_sasl(self) -> None:
        async with self._following_sasl:
            node = self._configs.node
            for listener in self._listeners.values():
                sasl = listener.sasl
                if sasl is not None:
                    if sasl.is_behind(node):
                        await self._runtime.in_worker(sasl.take_over if self._is_starting else sasl.follow, node)
                    sasl.refresh()

    async def _refresh_tls(self) -> None:
        async with self._following_tls:
            node, in_worker = self._configs.node, self._runtime.in_worker
            for name, (protocol, tls, _) in self._listeners.items():
                if tls is not None:
                    try:
                        config, asked = listener_config(node, name), client_auth(node, name, protocol)
                    except ApiError as error:
                        (tls.close if self._is_starting else tls.keep)(error)
                        continue
                    await in_worker(tls.take_over if self._is_starting else tls.refresh, config, asked)
                    await in_worker(tls.look_at_time, self._runtime.now_ms())
            self._followed = node

    def _secured(self, name: str, protocol: SecurityProtocol) -> ListenerSecurity:
        tls = sasl = None
        if protocol.has_tls:
            from ottla.server.security.listener_tls import ListenerTls

            node = self._configs.node
            is_between_brokers = inter_broker_listener(node.broker) == name
            asked = client_auth(node, name, protocol)
            tls = ListenerTls(name, listener_config(node, name), asked, is_between_brokers=is_between_brokers)
            tls.look_at_time(self._runtime.now_ms())
        if protocol.has_sasl:
            from ottla.server.security.listener_sasl import ListenerSasl

            sasl = ListenerSasl(name, self._configs.node, self._runtime, self.new_credentials())
        return ListenerSecurity(protocol, tls, sasl)

    def new_credentials(self) -> Credentials:
        """Return what the cluster knows about its users, for one listener."""
        from ottla.server.security.credentials import Credentials

        return Credentials(
            self._state,
            secret_key_in(self._configs.broker),
            self._runtime.now_ms,
            lambda: self._configs.broker[OTTLA_SCRAM_UNKNOWN_USERS_SECRET],
            self._runtime.rng,
        )
