"""ThrottledClient: the connection of a client, as far as quotas use it, and how it is muted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Protocol

from ottla.model import limits
from ottla.security.decisions import Decisions
from ottla.security.principal import Principal


class ThrottledClient(Protocol):
    """The part of a connection's context that this room needs."""

    principal: Principal
    client_id: str
    when_closed: dict[Hashable, Callable[[], None]]

    @property
    def decisions(self) -> Decisions | None:
        """What the client may do; None if everything is allowed."""

    def hold(self) -> None:
        """Handle no further request until `let_go`."""

    def let_go(self) -> None: ...

    def has_left(self) -> bool:
        """Return whether the client has disconnected."""


class Mute:
    """Lets a connection handle no further request until the wait of its client is over, or the client has left."""

    def __init__(self, client: ThrottledClient, for_ms: int, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop
        self._until_s = loop.time() + for_ms / 1000
        client.hold()
        client.when_closed[self] = self._end
        self._timer = self._look_later()

    def _look_later(self) -> asyncio.TimerHandle:
        # A connection that is not read does not notice that its client has closed it, so this is checked now and then.
        return self._loop.call_at(min(self._until_s, self._loop.time() + limits.MUTED_LOOK_S), self._look)

    def _look(self) -> None:
        if self._loop.time() >= self._until_s or self._client.has_left():
            self._end()
        else:
            self._timer = self._look_later()

    def _end(self) -> None:
        self._timer.cancel()
        self._client.when_closed.pop(self, None)
        self._client.let_go()
