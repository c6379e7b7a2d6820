"""TopicsSeen: all topics as one user sees them. Thousands are dear to ask for, and are kept for some seconds."""

from __future__ import annotations

import asyncio

from ottla.client.metadata import TopicInfo
from ottla.console.access import Access
from ottla.model import limits


class TopicsSeen:
    """Kept by the Access of a user. Few topics are asked for each time, so that a list is as new as can be."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._topics: list[TopicInfo] = []
        self._until_s = 0.0
        self._turn = asyncio.Lock()

    async def all(self) -> list[TopicInfo]:
        """Every topic, sorted by name. Viewers who ask at the same time share one answer."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            if loop.time() >= self._until_s:
                self._topics = await self._access.aside(lambda admin: admin.topics.all())
                is_dear = len(self._topics) >= limits.CONSOLE_TOPICS_KEPT_MIN
                self._until_s = loop.time() + limits.CONSOLE_TOPICS_KEPT_S if is_dear else 0.0
            return self._topics

    def forget(self) -> None:
        """Ask again: topics have changed."""
        self._until_s = 0.0


def topics_seen(access: Access) -> TopicsSeen:
    return access.kept(TopicsSeen, TopicsSeen)
