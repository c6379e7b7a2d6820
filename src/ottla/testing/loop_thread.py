"""LoopThread: a service of the test process, on an event loop of its own, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

START_TIMEOUT_S = 30.0


class LoopThread:
    """Runs `serve` until it ends. `serve` is given a function that it calls when the service can be used."""

    def __init__(
        self,
        name: str,
        serve: Callable[[Callable[[], None]], Coroutine[Any, Any, None]],
        new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    ) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None  # while it runs
        self._name = name
        self._serve = serve
        self._new_loop = new_loop
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Return when the service can be used; raise what it raised instead."""
        self._ready.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name=f"ottla-{self._name}", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the {self._name} did not start in time")
        if self._failure is not None:
            raise self._failure

    def end(self, ask: Callable[[], None]) -> None:
        """Call `ask` in the loop, which makes `serve` end, and wait for that; calling it again is harmless."""
        if self._thread is None:
            return
        if self.loop is not None:
            self.loop.call_soon_threadsafe(ask)
        self._thread.join()
        self._thread = None

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._new_loop) as runner:
                self.loop = runner.get_loop()
                runner.run(self._serve(self._ready.set))
        except BaseException as failure:
            self._failure = failure
        finally:
            self.loop = None
            self._ready.set()
