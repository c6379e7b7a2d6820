"""NodeSecurity: the security of a node: its listeners as they are set up now, access rules, logins and the audit log.

TLS and SASL are imported and set up only for listeners that use them, so a plain node starts as quickly as ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.cluster.commands.delegation_tokens import secret_key_in
from ottla.cluster.entities import Change, ConfigChanged
from ottla.cluster.state import ClusterState
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.resources import ResourceType
from ottla.model.settings.sasl import OTTLA_SCRAM_UNKNOWN_USERS_SECRET
from ottla.security.protocol import SecurityProtocol
from ottla.server.loop.runtime import Runtime
from ottla.server.security.audit.sinks import audit_log
from ottla.server.security.authorization import Authorization
from ottla.server.security.exposure import warn_of_exposure
from ottla.server.security.listener_security import ListenerSecurity
from ottla.server.security.logins import Logins
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import inter_broker_listener
from ottla.server.settings.listener_config import client_auth, listener_config
from ottla.server.settings.listeners import ListenerAddress, security_protocols
from ottla.server.settings.metrics_listener import METRICS, has_secured_metrics

if TYPE_CHECKING:
    from ottla.server.security.credentials import Credentials

log = logging.getLogger(__name__)


class NodeSecurity:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        listeners: Sequence[ListenerAddress],
        state: Callable[[], ClusterState],
    ) -> None:
        """Raise INVALID_CONFIG if a listener cannot be secured as the settings ask for."""
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
        self._refreshes = any(each.tls is not None for each in self._listeners.values())
        self._refreshing = asyncio.Lock()

    def listener(self, name: str) -> ListenerSecurity:
        return self._listeners[name]

    def settings_changed(self) -> None:
        """Follow a change of the node's dynamic settings."""
        for name, listener in self._listeners.items():
            if listener.sasl is not None:
                try:
                    listener.sasl.configure(self._configs.node)
                except ApiError as error:
                    log.error("listener %s keeps its old SASL settings: %s", name, error.text)
        if self._refreshes:
            self._runtime.tasks.spawn(self.refresh())

    async def check_change(self, new: NodeConfig) -> None:
        """Raise INVALID_REQUEST unless the listeners can have these settings instead of the present ones."""
        present = self._configs.node
        for name, listener in self._listeners.items():
            if listener.tls is not None:
                try:
                    config = listener_config(new, name)
                except ApiError as error:
                    raise ApiError(ErrorCode.INVALID_REQUEST, error.text) from None
                asked = client_auth(new, name, listener.protocol)
                await self._runtime.in_worker(listener.tls.check_change, listener_config(present, name), config, asked)

    def follow(self, changes: Iterable[Change]) -> None:
        """Look at the files again whenever a setting of a broker is written, also with its old value, as Kafka does."""
        if self._refreshes and any(
            type(each) is ConfigChanged and each.resource.type == ResourceType.BROKER for each in changes
        ):
            self._runtime.tasks.spawn(self.refresh())

    def look_at_own_login(self, state: ClusterState) -> None:
        """Warn if this node could not log in to its own listener; called when the metadata was read."""
        if any(each.sasl is not None for each in self._listeners.values()):
            from ottla.server.security.own_login import warn_of_missing_user

            warn_of_missing_user(self._configs.node, state)

    async def refresh(self) -> None:
        """Look for new certificates of the listeners, and for new keys of tokens; called from time to time."""
        async with self._refreshing:
            for name, listener in self._listeners.items():
                if listener.sasl is not None:
                    listener.sasl.refresh()
                if listener.tls is not None:
                    node = self._configs.node
                    asked = client_auth(node, name, listener.protocol)
                    await self._runtime.in_worker(listener.tls.refresh, listener_config(node, name), asked)
                    await self._runtime.in_worker(listener.tls.look_at_time, self._runtime.now_ms())

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
