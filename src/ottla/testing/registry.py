"""A schema registry for tests, on an event loop of its own, in a thread of the test process."""

from __future__ import annotations

import asyncio
import threading

from ottla.registry.leader import ElectionOptions
from ottla.registry.service import Service, ServiceOptions
from ottla.registry.store import StoreOptions

START_TIMEOUT_S = 30.0


class Registry:
    """`start` returns when everything in the broker's `_schemas` has been read; `url` is the address for clients."""

    def __init__(
        self,
        bootstrap: str,
        port: int = 0,
        *,
        store: StoreOptions | None = None,
        election: ElectionOptions | None = None,
    ) -> None:
        self._options = ServiceOptions(
            bootstrap, port=port, store=store or StoreOptions(), election=election or ElectionOptions()
        )
        self.service: Service | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    @property
    def url(self) -> str:
        """The value for clients' `schema.registry.url`."""
        assert self.service is not None, "the registry is not running"
        return self.service.url

    def start(self) -> Registry:
        self._ready.clear()
        self._thread = threading.Thread(target=self._run, name="ottla-registry", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S):
            raise TimeoutError("the registry did not start in time")
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop cleanly; calling it again is harmless."""
        if self._thread is not None:
            if self._loop is not None and self._ended is not None:
                self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure
        finally:
            self._loop = None
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self.service = Service(self._options)
        await self.service.start()
        try:
            await self.service.loaded()
            self._ready.set()
            await self._ended.wait()
        finally:
            await self.service.stop()
