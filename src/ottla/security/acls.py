"""The vocabulary of access control lists, with Kafka's numbers: resource types, patterns, operations, permissions."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

# The name of the only resource of type CLUSTER.
CLUSTER_NAME: Final = "kafka-cluster"
# As the name of a literal pattern: every resource of the type. As a host: every address.
WILDCARD: Final = "*"
_UNKNOWN = 0  # in all vocabularies
ANY: Final = 1  # likewise: only filters have it


class AclResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def is_known(kind: type[IntEnum], code: int) -> bool:
    """Return whether this release knows the meaning of a number that a client sent."""
    return code != _UNKNOWN and any(code == member for member in kind)
