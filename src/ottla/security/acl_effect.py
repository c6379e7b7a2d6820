"""Entries of access control lists that can have no effect. Kafka's protocol accepts them, and whoever made one would
think that it works: so whoever makes entries for a person asks here first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from ottla.model.names import TOPIC_NAME_CHARS_MAX, topic_name_problem
from ottla.security.acls import WILDCARD, AclOperation, AclResourceType

_PROBLEM_SHOWN: Final = 200
_CONFIGS: Final = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
# The operations that can be allowed on each type of resource, as in Kafka.
_OPERATIONS: Final[Mapping[AclResourceType, Sequence[AclOperation]]] = {
    AclResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        *_CONFIGS,
    ),
    AclResourceType.GROUP: (AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *_CONFIGS),
    AclResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        *_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    AclResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.TWO_PHASE_COMMIT),
    AclResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    AclResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}


def effect_problem(
    resources: Sequence[tuple[AclResourceType, str]], operations: Sequence[AclOperation], prefix: str | None = None
) -> str | None:
    """Say which name no resource has, or which operation no request needs on it; None if all can have an effect.
    `prefix` is the option by which the names were made prefixes, None if they are whole names.
    """
    if prefix and all(kind is AclResourceType.CLUSTER for kind, _ in resources):
        return f"there is one cluster: {prefix} is for names of topics, groups and the like"
    for kind, name in resources:
        if not name:
            return f"the name of the {_word(kind)} is empty"
        if prefix and name == WILDCARD:
            return f"with {prefix}, {WILDCARD} is a character of names: without it, it stands for all"
        if kind is AclResourceType.TOPIC and name != WILDCARD:
            problem = topic_name_problem(f"{name}x" if prefix and len(name) < TOPIC_NAME_CHARS_MAX else name)
            if problem is not None:
                begin = f"no topic can have the name{' or begin with' if prefix else ''}"
                return f"{begin} {name[:TOPIC_NAME_CHARS_MAX]!r}: {problem[:_PROBLEM_SHOWN]}"
        known = (AclOperation.ALL, *_OPERATIONS[kind])
        for operation in operations:
            if operation not in known:
                can = ", ".join(map(_word, known))
                return f"nobody needs {_word(operation)} on a {_word(kind)}: its operations are {can}"
    return None


def _word(code: IntEnum) -> str:
    return code.name.lower().replace("_", "-")
