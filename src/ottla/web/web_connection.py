"""The connection of a request, for applications that bound how long they wait for a client that does not read.

An application finds it in the scope's `state`. uvicorn takes what it is given to send, whether or not the client reads:
only an application that bounds what is unsent, and ends the connection, is not held up.
"""

from __future__ import annotations

import asyncio

from starlette.types import Scope

_NAME = "connection"


class WebConnection:
    """What an application may do with the connection of a request."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._lost = asyncio.Event()

    def send_at_once(self) -> None:
        """From now on, let each message wait until all before it have been sent."""
        if not self._transport.is_closing():
            self._transport.set_write_buffer_limits(high=1, low=0)

    async def abort(self) -> None:
        """End the connection, and discard what is unsent."""
        self._transport.abort()
        await self._lost.wait()

    def note_lost(self) -> None:
        self._lost.set()

    def as_state(self) -> dict[str, WebConnection]:
        """Return what applications find in the state of each request."""
        return {_NAME: self}


def connection_of(scope: Scope) -> WebConnection:
    """Return the connection of a request that one of our servers serves."""
    found = scope["state"][_NAME]
    assert isinstance(found, WebConnection)
    return found
