"""VerificationKeys: the keys of an identity provider as they were last read, for all connections of a listener.

Rules: at most one read is under way. If it fails, the old keys stay, and the next one waits longer each time. A token
with an unknown key makes the keys be read anew, but at most once in `limits.JWKS_READ_AGAIN_MS`, whatever clients send.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import NamedTuple, TypeAlias

from ottla.model import limits
from ottla.security.jwks import VerificationKey
from ottla.server.security.key_document import KeysUnavailable

log = logging.getLogger(__name__)


ReadKeys: TypeAlias = Callable[[], tuple[VerificationKey, ...]]


class ReadingPlace(NamedTuple):
    """What reading keys needs: `in_worker` runs a function in a thread, `spawn` begins a task."""

    in_worker: Callable[[ReadKeys], Awaitable[tuple[VerificationKey, ...]]]
    spawn: Callable[[Coroutine[object, None, None]], asyncio.Task[None]]
    steady_ms: Callable[[], int]  # a clock that is never set


class VerificationKeys:
    def __init__(
        self,
        read: ReadKeys,
        place: ReadingPlace,
        *,
        name: str,
        refresh_ms: int,
        backoff_ms: int,
        backoff_max_ms: int,
    ) -> None:
        """`read` blocks and raises KeysUnavailable; `name` is for the log."""
        self.keys: tuple[VerificationKey, ...] = ()
        self._read = read
        self._place = place
        self._name = name
        self._refresh_ms = refresh_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self._reading: asyncio.Task[None] | None = None
        self._failures = 0  # in a row
        self._begun_ms = -1
        self._due_ms = 0  # when the keys should be read the next time
        self._not_before_ms = 0  # when they may be

    def refresh(self) -> None:
        """Begin to read the keys if it is time to."""
        if self._place.steady_ms() >= self._due_ms:
            self._begin()

    async def known(self) -> None:
        """Wait until there are keys; return without any if the provider does not answer."""
        self.refresh()
        if not self.keys:
            await self._wait()

    async def read_again(self) -> None:
        """Wait for keys that were read after this call, because a token names a key that is not known."""
        asked_ms = self._place.steady_ms()
        if not self._failures:
            await asyncio.sleep((self._not_before_ms - asked_ms) / 1000)
        if self._begun_ms < asked_ms and self._place.steady_ms() >= self._not_before_ms:
            self._begin()
        await self._wait()

    def _begin(self) -> None:
        if self._reading is None:
            self._begun_ms = self._place.steady_ms()
            self._reading = self._place.spawn(self._read_in_worker())

    async def _wait(self) -> None:
        if self._reading is not None:
            await asyncio.wait([self._reading])

    async def _read_in_worker(self) -> None:
        try:
            keys = await self._place.in_worker(self._read)
        except Exception as error:  # whatever it is, the next read has to wait
            self._failed(error)
        else:
            self._succeeded(keys)
        finally:
            self._reading = None

    def _succeeded(self, keys: tuple[VerificationKey, ...]) -> None:
        if self._failures or not self.keys:
            log.info("%s: %d keys for tokens were read", self._name, len(keys))
        self.keys = keys
        self._failures = 0
        now_ms = self._place.steady_ms()
        self._not_before_ms = now_ms + limits.JWKS_READ_AGAIN_MS
        self._due_ms = now_ms + max(self._refresh_ms, limits.JWKS_READ_AGAIN_MS)

    def _failed(self, error: Exception) -> None:
        pause_ms = min(self._backoff_ms << min(self._failures, limits.JWKS_DOUBLINGS_MAX), self._backoff_max_ms)
        self._failures += 1
        self._due_ms = self._not_before_ms = self._place.steady_ms() + pause_ms
        consequence = f"the {len(self.keys)} old ones stay" if self.keys else "no client can log in with a token"
        log.warning(
            "%s: the keys for tokens cannot be read, %s: %s",
            self._name,
            consequence,
            error,
            exc_info=None if isinstance(error, KeysUnavailable) else error,
        )
