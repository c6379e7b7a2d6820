"""Searches for offsets by timestamp (`log/lookup.py`): short ones on the loop, others in a worker (`batch_looks`)."""

from __future__ import annotations

from collections.abc import Callable

from ottla.log.lookup import TimeOffset, TimeSearch
from ottla.model import limits
from ottla.server.loop.fair_turns import WaitingClient
from ottla.server.loop.later import Later
from ottla.server.storage.batch_looks import BatchLooks

Search = Callable[[TimeSearch], TimeOffset | None]


class Unfinished(Exception):
    """A search that takes longer than the loop may spend on it."""

    def __init__(self, search: TimeSearch) -> None:
        super().__init__()
        self.search = search

    def go_on(self, looks: BatchLooks, client: WaitingClient | None = None) -> Later[Search]:
        """Continue in a worker; the result is a `Search` that knows the answer.

        Other state that the caller has read may have changed by then. A client's searches share one turn among those of
        all clients, and end when the client disconnects.
        """
        found: Later[Search] = Later()
        looks.search(self.search, lambda _: found.set(lambda _: self.search.whole()), client)
        return found


def search_here(looks: BatchLooks) -> Search:
    """Return a search that raises `Unfinished` if it would delay other requests."""

    def search(wanted: TimeSearch) -> TimeOffset | None:
        if looks.allow(limits.LOOKED_AT_UNPACKED_BYTES) and wanted.step():
            return wanted.whole()
        raise Unfinished(wanted)

    return search
