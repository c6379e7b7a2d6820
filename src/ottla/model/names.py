"""Names that clients choose: which topic names are legal, and which two names collide.

Clients see the wording of the messages, so it has Kafka's form.
"""

import re

from ottla.model.errors import ApiError, ErrorCode

# Partition directories are `<topic>-<partition>` plus a suffix for deletion, within the 255 bytes a file name may have.
TOPIC_NAME_CHARS_MAX = 249

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
AUDIT_TOPIC = "__ottla_audit"
SCHEMAS_TOPIC = "_schemas"
# This is the order in which they are listed. Metadata does not show `__cluster_metadata`.
INTERNAL_TOPICS = (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_STATE_TOPIC)

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def topic_name_problem(name: str) -> str | None:
    """Return what is wrong with a topic name, or None."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > TOPIC_NAME_CHARS_MAX:
        return f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_CHARS_MAX}"
    if _LEGAL.fullmatch(name) is None:
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def check_topic_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION unless `name` may name a topic."""
    problem = topic_name_problem(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def collision_key(name: str) -> str:
    """Return the key that must be unique over all topics: metric names replace '.' by '_'."""
    return name.replace(".", "_")


def is_internal(topic: str) -> bool:
    """Say whether this is an internal topic (Metadata marks it, so that clients do not delete it by accident)."""
    return topic in INTERNAL_TOPICS


def is_reserved(topic: str) -> bool:
    """Say whether the topic, or its name, is for records of servers themselves. No setting of a client may make the
    broker write its records there.
    """
    return topic.startswith("__") or topic == SCHEMAS_TOPIC
