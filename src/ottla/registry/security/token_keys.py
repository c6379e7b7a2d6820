"""TokenKeys: the public keys that bearer tokens are signed with, read as brokers read theirs.

They are kept, read again and waited for as `VerificationKeys` describes, in a worker thread of the registry. Only a
token that arrives makes the registry check whether it is time to read them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from ottla.security.jwks import VerificationKey
from ottla.server.loop.workers import in_worker
from ottla.server.security.key_document import KeyDocument
from ottla.server.security.verification_keys import ReadingPlace, VerificationKeys


class JwksSource(NamedTuple):
    """Where the keys are, and how often they are read."""

    document: KeyDocument
    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int


class TokenKeys:
    def __init__(self, source: JwksSource) -> None:
        self._source = source
        self._worker = ThreadPoolExecutor(1, "token-keys")
        self._keys: VerificationKeys | None = None

    def start(self) -> None:
        """Begin to read the keys, on the running loop."""
        source = self._source
        loop = asyncio.get_running_loop()
        self._keys = VerificationKeys(
            source.document.read,
            ReadingPlace(partial(in_worker, loop, self._worker), loop.create_task, lambda: int(loop.time() * 1_000)),
            name=f"bearer tokens, {source.document.shown}",
            refresh_ms=source.refresh_ms,
            backoff_ms=max(source.backoff_ms, 1),
            backoff_max_ms=source.backoff_max_ms,
        )
        self._keys.refresh()

    def stop(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def known(self) -> Sequence[VerificationKey]:
        """Return the keys; the first time, wait until there was an attempt to read them."""
        await self._running.known()
        return self._running.keys

    async def again(self) -> Sequence[VerificationKey]:
        """Return keys that were read after this call, because a token names one that is not known."""
        await self._running.read_again()
        return self._running.keys

    @property
    def _running(self) -> VerificationKeys:
        assert self._keys is not None, "the registry has started"
        return self._keys
