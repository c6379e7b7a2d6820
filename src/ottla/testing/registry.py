"""A schema registry for tests, on an event loop of its own, in a thread of the test process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from ottla.registry.leader import ElectionOptions
from ottla.registry.security.settings import listener_of, registry_settings
from ottla.registry.service import Service, ServiceOptions
from ottla.registry.store import StoreOptions
from ottla.testing.loop_thread import LoopThread


class Registry:
    """`start` returns when everything in the broker's `_schemas` has been read; `url` is the address for clients."""

    def __init__(
        self,
        bootstrap: str,
        port: int = 0,
        *,
        store: StoreOptions | None = None,
        election: ElectionOptions | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`settings` are those of a registry's file: HTTPS, authentication, and `kafkastore.*` of its connections."""
        read = registry_settings(settings or {})
        self._options = ServiceOptions(
            bootstrap,
            port=port,
            store=store or StoreOptions(),
            election=election or ElectionOptions(),
            security=read.store or None,
            scheme=listener_of(read.config).scheme,
            config=read.config,
        )
        self.service: Service | None = None
        self._ended = asyncio.Event()
        self._thread = LoopThread("registry", self._serve)

    @property
    def url(self) -> str:
        """The value for clients' `schema.registry.url`."""
        assert self.service is not None, "the registry is not running"
        return self.service.url

    def start(self) -> Registry:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop cleanly; calling it again is harmless."""
        self._thread.end(lambda: self._ended.set())

    async def _serve(self, ready: Callable[[], None]) -> None:
        self._ended = asyncio.Event()
        self.service = Service(self._options)
        await self.service.start()
        try:
            await self.service.loaded()
            ready()
            await self._ended.wait()
        finally:
            await self.service.stop()
