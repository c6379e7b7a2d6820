"""Access: the cluster as one user reaches it. All that the console does, it does with the rights of that user.

Rules:
- An Access has an admin client, and a client of the schema registry if there is one. It is opened by signing in, and
  closed with its session; without signing in there is one for everybody.
- The password stays in memory for as long as the session lasts, because connections authenticate anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ottla.client.admin import Admin
from ottla.client.registry import SchemaRegistry
from ottla.console.options import ConsoleOptions
from ottla.wire.messages.groups.ottla_describe_group_events import OttlaDescribeGroupEventsRequest

K = TypeVar("K")


class Access:
    """The clients of one user, and what the console keeps for the pages of that user (`kept`)."""

    def __init__(self, options: ConsoleOptions, user: str = "", password: str = "") -> None:
        self.options = options
        self.user = user
        self.client_options = options.client(user, password)
        self.admin = Admin(self.client_options)
        registry = options.registry_of(user, password)
        self.registry = None if registry is None else SchemaRegistry(registry)
        self._is_ottla: bool | None = None
        self._kept: dict[type, object] = {}
        self._closers: list[Callable[[], None]] = []

    async def check(self) -> None:
        """Connect. Raises AuthenticationError if the cluster refuses the user, ClientError if no broker answers."""
        await self.admin.nodes.describe()

    async def is_ottla(self) -> bool:
        """Whether the brokers are Ottla's: they serve an API of our own."""
        if self._is_ottla is None:
            served = await self.admin.nodes.api_versions()
            self._is_ottla = OttlaDescribeGroupEventsRequest.key in served
        return self._is_ottla

    def kept(self, kind: type[K], make: Callable[[Access], K], close: Callable[[K], None] | None = None) -> K:
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
        for close in self._closers:
            close()
        await self.admin.close()
