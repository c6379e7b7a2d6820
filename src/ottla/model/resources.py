"""Resources that have configurations, and sources of values; Kafka's numbers, shared by broker and client."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from ottla.model.limits import INT32_MAX

_NODE_ID = re.compile(r"[+-]?[0-9]{1,10}")


class ResourceType(IntEnum):
    """The kind of resource that a configuration belongs to."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """The source of a value."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Resource(NamedTuple):
    """The owner of a configuration. A broker's name is its id, or empty for the default of all brokers."""

    type: int
    name: str

    @classmethod
    def topic(cls, name: str) -> Resource:
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int | None) -> Resource:
        return cls(ResourceType.BROKER, "" if node_id is None else str(node_id))

    def __str__(self) -> str:
        kind = ResourceType(self.type).name if self.type in ResourceType._value2member_map_ else f"type {self.type}"
        return f"{kind.lower().replace('_', '-')} {self.name or 'default'}"


def node_id_of(name: str) -> int | None:
    """Return the node id that the name of a broker resource stands for; None if it is no node id."""
    found = int(name) if _NODE_ID.fullmatch(name) else None
    return found if found is None or abs(found) <= INT32_MAX else None
