"""Health: whether a node is ready to serve, and if not, why."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.storage.storage import Storage


class Health:
    def __init__(
        self, storage: Storage, metadata: MetadataHost, is_open: Callable[[], bool], *, is_broker: bool
    ) -> None:
        """`is_open` returns whether all listeners of the node accept connections."""
        self._is_open = is_open
        self._storage = storage
        self._metadata = metadata
        self._is_broker = is_broker

    def problems(self) -> list[str]:
        """Return what keeps the node from serving; nothing if it is ready."""
        return list(self._problems())

    def _problems(self) -> Iterator[str]:
        if not self._is_open():
            yield "its listeners are not open yet"
        broker = self._metadata.state.brokers.get(self._metadata.node_id)
        if self._is_broker and broker is None:
            yield "the broker is not registered"
        elif self._is_broker and broker is not None and broker.fenced:
            yield "the broker is fenced"
        for directory in self._storage.directories:
            if directory.offline:
                yield f"the data directory {directory.path} is offline"
