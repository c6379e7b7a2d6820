"""One instance of the registry: HTTP in front, the topic behind, a place in the election.

HTTP is served from the start. Until the topic has been read, and while a broker that is needed cannot be reached,
requests are answered with Confluent's 5xx codes; nobody has to restart anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.client.cluster import Cluster
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.registry.identity import Identity
from ottla.registry.leader import Election, ElectionOptions
from ottla.registry.store import StoreOptions, TopicStore

DEFAULT_LISTEN = "127.0.0.1:8081"
DEFAULT_PORT = 8081
_EVERYWHERE = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Where the log is, where to listen, and what the others are told (`advertised`: the same address unless given)."""

    bootstrap: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    advertised_host: str | None = None
    store: StoreOptions = field(default_factory=StoreOptions)
    election: ElectionOptions = field(default_factory=ElectionOptions)


class Service:
    """`start` returns when the port is open (`url`), `loaded` when the schemas have been read."""

    def __init__(self, options: ServiceOptions) -> None:
        # The web is imported when it is needed: who only names the service's options should not wait for it.
        from ottla.registry.app import build
        from ottla.web.serving import WebServer

        self._options = options
        self._cluster = Cluster(_client_options(options))
        self._election = Election(self._cluster, Identity(_advertised(options), options.port), options.election)
        self._store = TopicStore(self._cluster, self._election, options.election.group_id, options.store)
        self._web = WebServer(build(self._store), options.host, options.port)

    @property
    def url(self) -> str:
        return self._election.identity.url

    @property
    def is_leader(self) -> bool:
        return self._election.verdict.is_self

    async def start(self) -> None:
        await self._web.start()
        self._election.identity = self._election.identity._replace(port=self._web.address[1])
        self._store.start()
        self._election.start()

    async def loaded(self) -> None:
        await self._store.loaded()

    async def stop(self) -> None:
        """Answer what was asked, leave the group, go."""
        await self._web.stop()
        await self._election.stop()
        await self._store.stop()
        await self._cluster.close()


def _advertised(options: ServiceOptions) -> str:
    if options.advertised_host is not None:
        return options.advertised_host
    if options.host not in _EVERYWHERE:
        return options.host
    import socket

    return socket.gethostname()


def _client_options(options: ServiceOptions) -> ClientOptions:
    timeout_ms = options.store.timeout_ms
    return ClientOptions(
        parse_bootstrap(options.bootstrap),
        client_id="ottla-registry",
        connect_timeout_ms=min(timeout_ms, 5_000),
        request_timeout_ms=timeout_ms,
        api_timeout_ms=timeout_ms,
    )
