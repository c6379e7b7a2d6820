"""The subscription of a consumer: topic names, or a pattern over the names that exist.

Rules:
- A pattern has to match the whole name, as in Java; internal topics are never matched.
"""

import re
from collections.abc import Iterable

from ottla.client.cluster import Cluster
from ottla.client.metadata import TopicInfo


class SubscribedTopics:
    """A subscription, and the topics that it currently selects."""

    def __init__(self, topics: Iterable[str] | re.Pattern[str]) -> None:
        self.pattern = topics if isinstance(topics, re.Pattern) else None
        self.topics: tuple[str, ...] = () if isinstance(topics, re.Pattern) else tuple(sorted(set(topics)))

    async def refresh(self, cluster: Cluster) -> bool:
        """Look up the topics that the pattern matches, if there is a pattern; return whether they have changed."""
        if self.pattern is None:
            return False
        answer, _ = await cluster.refresh(None)
        names = [each.name for each in answer.topics if each.name and not each.is_internal and not each.error_code]
        found = tuple(sorted(name for name in names if self.pattern.fullmatch(name)))
        changed = found != self.topics
        self.topics = found
        return changed


async def partition_counts(cluster: Cluster, topics: Iterable[str]) -> dict[str, int]:
    """Return how many partitions the topics have now; topics that do not exist are left out."""
    wanted = sorted(set(topics))
    if not wanted:
        return {}
    await cluster.refresh(wanted)
    known: list[TopicInfo | None] = [cluster.metadata.topics.get(name) for name in wanted]
    return {each.name: each.partition_count for each in known if each is not None}
