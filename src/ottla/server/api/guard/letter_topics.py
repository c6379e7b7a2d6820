"""Rights on dead-letter topics: who has a broker write dead letters to a topic must be allowed to write there.

The settings of a topic or group say where its dead letters go, and the broker writes them, and creates the topic if
need be, with its own rights. So the client that changes these settings needs WRITE on the dead-letter topic, and CREATE
if it does not exist. This holds for the default name (`<topic>.dlq`), too.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model.group_settings import SHARE_DLQ_TOPIC
from ottla.model.resources import Resource, ResourceType
from ottla.model.topic_settings import OTTLA_SCHEMA_VALIDATION_ACTION, OTTLA_SCHEMA_VALIDATION_DLQ
from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api.context import Context
from ottla.server.api.guard.checks import decisions_of

Texts = Mapping[str, str | None]

_NAMES: dict[int, set[str]] = {
    ResourceType.TOPIC: {OTTLA_SCHEMA_VALIDATION_DLQ.name, OTTLA_SCHEMA_VALIDATION_ACTION.name},
    ResourceType.GROUP: {SHARE_DLQ_TOPIC.name},
}


def refusal_of(resource: Resource, changes: Texts, context: Context, before: Mapping[str, str]) -> str | None:
    """Return why the client may not make these changes (None: the setting is removed), or None if it may. Values that
    are not legal count as absent: the handler refuses them.
    """
    if _NAMES.get(resource.type, set()).isdisjoint(changes):
        return None
    after = {name: text for name, text in {**before, **changes}.items() if text is not None}
    target, used = _target(resource, after, context)
    target_before, used_before = _target(resource, before, context)
    if not target or (target == target_before and used <= used_before):
        return None
    return _missing(target, context)


def _target(resource: Resource, texts: Mapping[str, str], context: Context) -> tuple[str, bool]:
    """Return the topic for dead letters (empty: there is none), and whether the settings send letters to it."""
    node = context.configs.node
    if resource.type == ResourceType.GROUP:
        return node.group(texts)[SHARE_DLQ_TOPIC], True
    settings = node.topic(texts)
    named, used = settings[OTTLA_SCHEMA_VALIDATION_DLQ], settings[OTTLA_SCHEMA_VALIDATION_ACTION] == "dlq"
    return named or (f"{resource.name}.dlq" if used else ""), used


def _missing(target: str, context: Context) -> str | None:
    decisions = decisions_of(context)
    if not decisions.allows(AclOperation.WRITE, AclResourceType.TOPIC, target):
        return f"Dead letters would go to topic {target}, which needs the permission WRITE on it."
    if (
        target in context.member.state.topics
        or decisions.suffices_on_cluster(AclOperation.CREATE)
        or decisions.allows(AclOperation.CREATE, AclResourceType.TOPIC, target)
    ):
        return None
    return f"Dead letters would create topic {target}, which needs the permission CREATE on it or on the cluster."
