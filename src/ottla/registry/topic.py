"""The topic of the registry: created if it does not exist, refused if it could lose schemas."""

from __future__ import annotations

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.model.topic_settings import CLEANUP_POLICY

_POLICY = CLEANUP_POLICY.name
_COMPACT = "compact"


class WrongTopic(Exception):
    """The topic exists and is unsuitable for a registry."""


async def ensure_topic(cluster: Cluster, name: str, replication_factor: int) -> None:
    """Make sure that the topic exists: one partition, compacted, with this replication factor, or as many replicas as
    there are brokers.
    """
    admin = Admin(cluster)
    try:
        found = await admin.topics.describe(name)
    except ApiError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        try:
            brokers = len((await cluster.refresh())[0].brokers)
            await admin.topics.create(name, 1, min(replication_factor, max(brokers, 1)), {_POLICY: _COMPACT})
        except ApiError as refused:  # another instance may have created it
            if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        found = await admin.topics.describe(name)
    if found.partition_count != 1:
        raise WrongTopic(
            f"topic {name} has {found.partition_count} partitions; a registry needs one that has a single partition"
        )
    settings = await admin.configs.describe(Resource(ResourceType.TOPIC, name), [_POLICY])
    policy = next((each.value for each in settings if each.name == _POLICY), None)
    if policy != _COMPACT:
        raise WrongTopic(
            f"topic {name} has {_POLICY}={policy}, so schemas would be deleted by age; set it to {_COMPACT}: "
            f"ottla topic alter {name} {_POLICY}={_COMPACT}"
        )
