"""RequestWatch: the latest requests of one client, kept while somebody asks for them; and what handlers see of that."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, Protocol

from ottla.model import limits


class ClientWanted(NamedTuple):
    """Whose requests are watched: by client id, by principal (`User:alice`), or by both."""

    client_id: str | None
    principal: str | None


class SeenRequest(NamedTuple):
    """One request. `outcome` is empty if it was answered; `errors` are the different error codes in its answer."""

    at_ms: int
    api_key: int
    version: int
    client_id: str
    principal: str
    host: str
    size_bytes: int
    queue_us: int
    local_us: int
    remote_us: int
    is_forwarded: bool  # whether the active controller answered it
    errors: tuple[int, ...]
    outcome: str


class RequestWatch:
    """The latest requests of one client; `count` is how many there were since the watch began. `asked_s` is when each
    asker last asked for it.
    """

    def __init__(self, wanted: ClientWanted, now_ms: int) -> None:
        self.wanted = wanted
        self.since_ms = now_ms
        self.asked_s: dict[str, float] = {}
        self.count = 0
        self.requests: deque[SeenRequest] = deque(maxlen=limits.REQUESTS_SEEN_MAX)

    def note(self, request: SeenRequest) -> None:
        self.count += 1
        self.requests.append(request)


class PresentClient(NamedTuple):
    """A client that is connected, and by how many connections."""

    client_id: str
    principal: str
    connections: int


class RequestLog(Protocol):
    """What the handlers use of the watches of a node."""

    def watch(self, wanted: ClientWanted, asker: str) -> RequestWatch:
        """Return the watch of a client, which begins now if there is none. Raises ApiError if there are too many, or
        `asker` asks for too many.
        """

    def clients(self) -> list[PresentClient]:
        """Return clients that are connected to this node; not all, if they are many."""
