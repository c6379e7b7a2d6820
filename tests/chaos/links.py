"""What can cut a node off from another: a network of namespaces where there can be one, else proxies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from tests.chaos import network
from tests.chaos.network import Network
from tests.chaos.proxy import Proxies
from tests.support.processes.clusters import Place

KINDS = ("namespaces", "proxy", "none")


class Links(Place, Protocol):
    def watch(self, pids: Callable[[], Mapping[int, int]]) -> None:
        """Which processes the nodes are (id → pid), whenever it is asked."""

    def cut(self, source: int, target: int) -> None:
        """From now on nothing of `source` reaches `target`."""

    def heal(self) -> None: ...


@contextmanager
def links(kind: str | None, ids: Sequence[int], tell: Callable[[str], None]) -> Iterator[Links | None]:
    """Of this kind, or the best there can be; None if it is "none"."""
    if kind is None:
        missing = network.unavailable()
        kind = "proxy" if missing else "namespaces"
        if missing:
            tell(f"links are cut by proxies: {missing}")
    if kind == "none":
        tell("links are not cut")
        yield None
        return
    made = (Network(ids) if kind == "namespaces" else Proxies(ids)).start()
    try:
        yield made
    finally:
        made.stop()
