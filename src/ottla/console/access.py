"""Access: the cluster as one user reaches it. All that the console does, it does with the rights of that user.

Rules:
- An Access has an admin client, and a client of the schema registry if there is one. It is opened by signing in, and
  closed with its session; without signing in there is one for everybody.
- The password stays in memory for as long as the session lasts, because connections authenticate anew.
- To close an Access closes what is kept for it first, all at once and within a bounded time. What fails to close is
  logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.client.admin import Admin
from ottla.client.registry import SchemaRegistry
from ottla.console.aside import AsideClient
from ottla.console.options import ConsoleOptions
from ottla.model import limits
from ottla.wire.messages.groups.ottla_describe_group_events import OttlaDescribeGroupEventsRequest

log = logging.getLogger(__name__)

K = TypeVar("K")
T = TypeVar("T")


class Access:
    """The clients of one user, and what the console keeps for the pages of that user (`kept`)."""

    def __init__(self, options: ConsoleOptions, user: str = "", password: str = "") -> None:
        self.options = options
        self.user = user
        self.client_options = options.client(user, password)
        self.admin = Admin(self.client_options)
        self._aside = AsideClient(self.client_options)
        registry = options.registry_of(user, password)
        self.registry = None if registry is None else SchemaRegistry(registry)
        self._is_ottla: bool | None = None
        self._kept: dict[type, object] = {}
        self._closers: list[Callable[[], Awaitable[None] | None]] = []

    async def check(self) -> None:
        """Connect. Raises AuthenticationError if the cluster refuses the user, ClientError if no broker answers."""
        await self.admin.nodes.describe()

    async def aside(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        """Do work that reads much, with these rights, beside the loop that serves pages (`aside.py`)."""
        return await self._aside.run(work)

    async def is_ottla(self) -> bool:
        """Whether the brokers are Ottla's: they serve an API of our own."""
        if self._is_ottla is None:
            served = await self.admin.nodes.api_versions()
            self._is_ottla = OttlaDescribeGroupEventsRequest.key in served
        return self._is_ottla

    def kept(
        self, kind: type[K], make: Callable[[Access], K], close: Callable[[K], Awaitable[None] | None] | None = None
    ) -> K:
        """Return the one object of a kind that is kept as long as this access, made when it is first asked for."""
        found = self._kept.get(kind)
        if isinstance(found, kind):
            return found
        made = self._kept[kind] = make(self)
        assert isinstance(made, kind)
        if close is not None:
            self._closers.append(lambda: close(made))
        return made

    async def close(self) -> None:
        try:
            await asyncio.gather(*map(_closed, (*self._closers, self._aside.close)))
        finally:
            await self.admin.close()


async def _closed(close: Callable[[], Awaitable[None] | None]) -> None:
    """Close one object, and wait for its end for a bounded time."""
    try:
        async with asyncio.timeout(limits.CONSOLE_CLOSE_S):
            ended = close()
            if ended is not None:
                await ended
    except Exception as error:
        log.error("a part of a session was not closed", exc_info=error)
