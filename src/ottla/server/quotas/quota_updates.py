"""QuotaUpdates: brings changed quotas of the metadata to those who apply them.

Few quotas are sorted and applied at once. Very many are sorted by a worker, once for all changes of a moment, and then
applied on the loop, unless newer ones were applied meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ottla.model.limits import QUOTAS_PER_SLICE
from ottla.security.quotas.limits_of_clients import Quotas
from ottla.server.loop.runtime import Runtime

_SETTLE_MS: Final = 100


class QuotaUser(Protocol):
    """A part of the node that applies quotas."""

    def sorted(self, quotas: Quotas) -> Callable[[], None]:
        """Sort quotas, perhaps in a worker; return what applies them, on the loop."""


class QuotaUpdates:
    def __init__(self, runtime: Runtime, current: Callable[[], Quotas], users: Sequence[QuotaUser]) -> None:
        """`current` returns the quotas of the metadata."""
        self._runtime = runtime
        self._current = current
        self._users = users
        self._seen = self._applied = 0  # how often the quotas have changed, and which of these are applied
        self._is_due = False  # whether a worker will sort very many quotas soon

    def follow(self) -> None:
        """Apply the current quotas, now or soon."""
        quotas = self._current()
        self._seen += 1
        if len(quotas) <= QUOTAS_PER_SLICE:
            self._applied = self._seen
            for each in self._users:
                each.sorted(quotas)()
        elif not self._is_due:
            self._is_due = True
            self._runtime.tasks.spawn(self._follow_many())

    async def _follow_many(self) -> None:
        await asyncio.sleep(_SETTLE_MS / 1000)
        self._is_due = False
        quotas, seen = dict(self._current()), self._seen
        ready = await self._runtime.in_worker(lambda: [each.sorted(quotas) for each in self._users])
        if seen > self._applied:
            self._applied = seen
            for apply in ready:
                apply()
