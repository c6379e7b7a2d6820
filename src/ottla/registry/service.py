"""One instance of the registry: an HTTP server, a store over the topic, a member of the election group.

HTTP is served from the start. Until the topic has been read, and while a required broker cannot be reached, requests
are answered with Confluent's 5xx codes; no restart is necessary.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from ottla.client.cluster import Cluster
from ottla.client.options import ClientOptions, GivenSecurity, parse_bootstrap
from ottla.registry.identity import RegistryIdentity, client_id_of
from ottla.registry.leader import ElectionOptions, RegistryElection
from ottla.registry.store import StoreOptions, TopicStore

if TYPE_CHECKING:
    from ottla.model.config import Config
    from ottla.registry.security.instance_security import InstanceSecurity
    from ottla.web.serving import WebServer

log = logging.getLogger(__name__)

DEFAULT_PORT = 8081
_EVERYWHERE = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The cluster, the address to listen on, and the address that other instances use (`advertised`; default: the
    same).
    """

    bootstrap: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    advertised_host: str | None = None
    store: StoreOptions = field(default_factory=StoreOptions)
    election: ElectionOptions = field(default_factory=ElectionOptions)
    security: GivenSecurity = None  # of the connections to the cluster
    scheme: str = "http"
    # Of HTTPS, authentication and access rules (`security/settings`); None: plain HTTP for everybody.
    config: Config | None = None


class Service:
    """An instance: `start` returns when the port is open (`url`), `loaded` when the schemas have been read."""

    def __init__(self, options: ServiceOptions) -> None:
        self._options = options
        self._running: _Running | None = None

    @property
    def url(self) -> str:
        return self._parts.election.identity.url

    @property
    def is_leader(self) -> bool:
        return self._parts.election.verdict.is_self

    async def start(self) -> None:
        # The web modules are imported when needed: importing this module for its options should be fast.
        from ottla.registry.app import build
        from ottla.registry.security.exposure import exposure
        from ottla.registry.security.instance_security import InstanceSecurity
        from ottla.registry.security.settings import registry_settings
        from ottla.web.serving import WebServer, listen

        options = self._options
        listening = await listen(options.host, options.port)
        identity = RegistryIdentity(_advertised(options), listening.getsockname()[1], options.scheme)
        cluster = Cluster(_client_options(options, identity))
        config = options.config if options.config is not None else registry_settings({}).config
        try:
            security = await asyncio.to_thread(InstanceSecurity.of, config, cluster, identity.url)
        except BaseException:
            listening.close()
            raise
        election = RegistryElection(cluster, identity, options.election)
        store = TopicStore(cluster, election, options.election.group_id, options.store, security.instances)
        context = None if security.https is None else security.https.context
        web = WebServer(build(store, security.gate, security.audit), listening, body_on_demand=True, tls=context)
        self._running = _Running(cluster, election, store, web, security)
        open_to = exposure(identity.url, listening.getsockname()[0], authenticates=security.gate is not None)
        if open_to is not None:
            log.warning("%s", open_to)
        await web.start()
        security.start()
        store.start()
        election.start()

    async def loaded(self) -> None:
        await self._parts.store.loaded()

    async def refused(self) -> NoReturn:
        """Wait until the group refuses this instance for good, and raise ElectionRefused."""
        await self._parts.election.refused()

    async def stop(self) -> None:
        """Finish the requests in progress, leave the group, and stop."""
        if self._running is not None:
            await self._running.web.stop()
            await self._running.security.stop()
            await self._running.election.stop()
            await self._running.store.stop()
            await self._running.cluster.close()

    @property
    def _parts(self) -> _Running:
        assert self._running is not None, "the service is not running"
        return self._running


class _Running(NamedTuple):
    """The parts of a started service."""

    cluster: Cluster
    election: RegistryElection
    store: TopicStore
    web: WebServer
    security: InstanceSecurity


def _advertised(options: ServiceOptions) -> str:
    if options.advertised_host is not None:
        return options.advertised_host
    if options.host not in _EVERYWHERE:
        return options.host
    import socket

    return socket.gethostname()


def _client_options(options: ServiceOptions, identity: RegistryIdentity) -> ClientOptions:
    timeout_ms = options.store.timeout_ms
    return ClientOptions(
        parse_bootstrap(options.bootstrap),
        client_id=client_id_of(identity),
        connect_timeout_ms=min(timeout_ms, 5_000),
        request_timeout_ms=timeout_ms,
        api_timeout_ms=timeout_ms,
        security=options.security,
    )
