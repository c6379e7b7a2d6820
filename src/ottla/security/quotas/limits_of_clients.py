"""Which quota counts for a client: Kafka's precedence of entities.

A quota belongs to an entity: a user, a client id, both, or the default of one of them; or, for new connections, an IP
address. Of all entities that match a client, only the most specific one counts:

1. user and client id
2. user and default client id
3. user
4. default user and client id
5. default user and default client id
6. default user
7. client id
8. default client id

All clients that share an entity of a user share its rate, except that each user of a default and each client id of a
default has a rate of its own. So a rate belongs to a user (3, 6), a client id (7, 8), or a pair of both (1, 2, 4, 5).
As with Kafka, a client without a client id has no quota of the kinds with a client id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from ottla.security.host import comparable_host

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

# The parts (type, name) of an entity; a name of None means the default.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]
Quotas: TypeAlias = Mapping[Entity, Mapping[str, float]]


class RateOwner(NamedTuple):
    """The clients that share one measured rate; an empty string stands for all users, or all client ids."""

    user: str
    client_id: str


class ClientLimits:
    """The quotas of one kind (`key`), for users and client ids."""

    def __init__(self, quotas: Quotas, key: str) -> None:
        self._users: dict[str | None, float] = {}
        self._client_ids: dict[str | None, float] = {}
        self._pairs: dict[tuple[str | None, str | None], float] = {}
        for entity, values in quotas.items():
            limit = values.get(key)
            parts = dict(entity)
            if limit is None or not parts or not parts.keys() <= {USER, CLIENT_ID}:
                continue
            if len(parts) == 2:
                self._pairs[parts[USER], parts[CLIENT_ID]] = limit
            elif USER in parts:
                self._users[parts[USER]] = limit
            else:
                self._client_ids[parts[CLIENT_ID]] = limit

    def __bool__(self) -> bool:
        return bool(self._users or self._client_ids or self._pairs)

    def find(self, user: str, client_id: str) -> tuple[RateOwner, float] | None:
        """Return whose rate a client belongs to, and its limit; None if it has no quota."""
        pairs, users, client_ids = self._pairs, self._users, self._client_ids
        if pairs and client_id:
            for pair in ((user, client_id), (user, None)):
                if pair in pairs:
                    return RateOwner(user, client_id), pairs[pair]
        if user in users:
            return RateOwner(user, ""), users[user]
        if pairs and client_id:
            for default in ((None, client_id), (None, None)):
                if default in pairs:
                    return RateOwner(user, client_id), pairs[default]
        if None in users:
            return RateOwner(user, ""), users[None]
        if client_id:
            for name in (client_id, None):
                if name in client_ids:
                    return RateOwner("", client_id), client_ids[name]
        return None


class AddressLimits:
    """The quotas on new connections of IP addresses."""

    def __init__(self, quotas: Quotas) -> None:
        self._default: float | None = None
        self._addresses: dict[str, float] = {}
        for entity, values in quotas.items():
            limit = values.get(CONNECTION_CREATION_RATE)
            if limit is None or len(entity) != 1 or entity[0][0] != IP:
                continue
            name = entity[0][1]
            if name is None:
                self._default = limit
            else:
                self._addresses[comparable_host(name)] = limit

    def __bool__(self) -> bool:
        return self._default is not None or bool(self._addresses)

    def find(self, address: str) -> float | None:
        return self._addresses.get(comparable_host(address), self._default)
