"""Places: the connections of the metrics endpoint, bounded in all and per address.

Rules:
- If there are too many, one makes room for a new one: of the address that has the most, a refused one first, then one
  that has not sent its request, then one that waits until its password is checked; the oldest of these first.
- A request that is served, or asks for the node's health, is never given up. Those that are served are bounded on their
  own, with fewer than there are places. So there is always room for a new connection, and for health checks.
- All addresses of a /64 network of IPv6 count as one.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from ottla.model import limits
from ottla.security.address_holder import holder_of


class PlaceStage(IntEnum):
    """How far a connection is; those that make room come first, in this order."""

    REFUSED = 0  # it waits for its refusal
    SILENT = 1  # it has not sent its request
    ASKING = 2  # who has sent its request is not known yet
    SERVED = 3
    HEALTH = 4


class PlaceHolder(Protocol):
    """What is used of a connection."""

    host: str
    stage: PlaceStage

    def abort(self) -> None: ...


class Places:
    def __init__(self) -> None:
        self._by_address: dict[str, dict[PlaceHolder, None]] = {}  # the oldest first
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def served(self) -> int:
        return sum(each.stage is PlaceStage.SERVED for own in self._by_address.values() for each in own)

    def all(self) -> list[PlaceHolder]:
        return [each for own in self._by_address.values() for each in own]

    def make_room(self, host: str) -> bool:
        """Whether there may be another connection of an address, perhaps in place of another one."""
        own = self._by_address.get(holder_of(host), {})
        if len(own) >= limits.METRICS_CONNECTIONS_PER_ADDRESS_MAX and not self._give_up(own):
            return False
        return self._count < limits.METRICS_CONNECTIONS_MAX or any(
            self._give_up(each) for each in sorted(self._by_address.values(), key=len, reverse=True)
        )

    def _give_up(self, own: dict[PlaceHolder, None]) -> bool:
        """Give up one of an address; return whether there was one."""
        found = min(own, key=lambda each: each.stage, default=None)  # the first, so the oldest
        if found is None or found.stage >= PlaceStage.SERVED:
            return False
        self.leave(found)  # at once: the end of the connection is told later
        found.abort()
        return True

    def take(self, client: PlaceHolder) -> None:
        self._by_address.setdefault(holder_of(client.host), {})[client] = None
        self._count += 1

    def leave(self, client: PlaceHolder) -> None:
        """Give back the place, if it still has one."""
        holder = holder_of(client.host)
        own = self._by_address.get(holder, {})
        if client in own:
            del own[client]
            self._count -= 1
            if not own:
                del self._by_address[holder]
