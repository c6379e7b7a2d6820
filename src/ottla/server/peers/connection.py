"""A connection to another node that reports when it is lost (`peers`)."""

from __future__ import annotations

from collections.abc import Callable

from ottla.client.connection import Connection


class PeerConnection(Connection):
    on_lost: Callable[[], None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost()
