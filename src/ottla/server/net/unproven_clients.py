"""UnprovenClients: the connections of SASL listeners whose clients have not authenticated yet, and what they may take.

They may be anybody's. So the frames that they send share a small memory budget of their own: however many there are,
clients that have authenticated do not wait for memory because of them. When that budget is spent, a connection that
holds some of it is closed for the one that needs more; and when the node is full, a connection is closed for a new one.
It is the oldest one of the address that has the most of them, as with TLS handshakes (`handshakes.py`): an address with
many loses one at once, one with few loses one that has had some time. A connection whose request this node is carrying
out is not closed.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Protocol

from ottla.model import limits
from ottla.security.address_holder import holder_of
from ottla.server.loop.request_memory import Holder, RequestMemory

log = logging.getLogger(__name__)


class UnprovenClient(Protocol):
    """The connection of a client that has not authenticated yet."""

    @property
    def address(self) -> str: ...

    @property
    def age_s(self) -> float: ...

    @property
    def is_served(self) -> bool:
        """Whether this node is carrying out a request of it."""

    @property
    def frame_holder(self) -> Holder:
        """What holds the memory of its frame."""

    def close(self) -> None: ...


class UnprovenClients:
    def __init__(self) -> None:
        self.memory = RequestMemory(limits.UNPROVEN_REQUEST_BYTES_MAX, self._make_memory)
        self._by_address: dict[str, dict[UnprovenClient, None]] = {}  # the oldest first
        self._by_holder: dict[Holder, UnprovenClient] = {}

    def entered(self, client: UnprovenClient) -> None:
        self._by_address.setdefault(holder_of(client.address), {})[client] = None
        self._by_holder[client.frame_holder] = client

    def left(self, client: UnprovenClient) -> None:
        """Forget a client that has authenticated or is gone; it may be forgotten already."""
        if self._by_holder.pop(client.frame_holder, None) is not None:
            address = holder_of(client.address)
            del self._by_address[address][client]
            if not self._by_address[address]:
                del self._by_address[address]

    @property
    def has_idle(self) -> bool:
        """Whether one of them can be given up for another connection."""
        return self._most_idle() is not None

    def give_up_one(self) -> bool:
        """Close one for another connection; return whether there was one to close."""
        found = self._most_idle()
        if found is not None:
            log.info("closing %s: others wait, and it has not authenticated", found.address)
            found.close()
        return found is not None

    def _most_idle(self) -> UnprovenClient | None:
        for own in sorted(self._by_address.values(), key=len, reverse=True):
            has_many = len(own) > limits.TLS_HANDSHAKES_PER_ADDRESS_FAIR
            for client in own:
                if not client.is_served and (has_many or client.age_s >= limits.UNPROVEN_PATIENCE_S):
                    return client
        return None

    def _make_memory(self, needy: Holder) -> None:
        """Close some of those that hold memory, until `needy` has what it waits for."""
        clients = [self._by_holder[each] for each in self.memory.holders if each in self._by_holder]
        idle = [each for each in clients if each.frame_holder is not needy and not each.is_served]
        counts = Counter(holder_of(each.address) for each in idle)
        idle.sort(key=lambda each: counts[holder_of(each.address)], reverse=True)  # and the oldest first
        for client in idle[: limits.UNPROVEN_CLOSED_AT_ONCE]:
            if needy in self.memory.waiting:
                log.info("closing %s: it has not authenticated, and others need its memory", client.address)
                client.close()
