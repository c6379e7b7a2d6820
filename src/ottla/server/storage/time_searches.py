"""Searches for records by time (`log/lookup.py`): short ones at once, others by a worker (`batch_looks`)."""

from __future__ import annotations

from collections.abc import Callable

from ottla.log.lookup import TimeOffset, TimeSearch
from ottla.model import limits
from ottla.server.loop.later import Later
from ottla.server.loop.rounds import WaitingClient
from ottla.server.storage.batch_looks import Looking

Search = Callable[[TimeSearch], TimeOffset | None]


class Unfinished(Exception):
    """A search that takes longer than the loop has time."""

    def __init__(self, search: TimeSearch) -> None:
        super().__init__()
        self.search = search

    def go_on(self, looking: Looking, client: WaitingClient | None = None) -> Later[Search]:
        """A worker searches on; then there is a `Search` that knows the answer. Whatever else was looked at before may
        have changed by then. A client's searches take one turn among those of the others, and end when it leaves."""
        found: Later[Search] = Later()
        looking.search(self.search, lambda _: found.set(lambda _: self.search.whole()), client)
        return found


def search_here(looking: Looking) -> Search:
    """A search that raises `Unfinished` where it would hold up the others."""

    def search(wanted: TimeSearch) -> TimeOffset | None:
        if looking.allow(limits.LOOKED_AT_UNPACKED_BYTES) and wanted.step():
            return wanted.whole()
        raise Unfinished(wanted)

    return search
