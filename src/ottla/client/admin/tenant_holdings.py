"""What a tenant has of its own besides users: topics, groups, settings of groups, transactional ids.

Rules:
- All of it is found by the prefix of its name, so what a deleted tenant left behind would belong to the next tenant of
  that name.
- Kafka's protocol has no request that deletes a transactional id: an open transaction is aborted, and the id expires
  (`transactional.id.expiration.ms`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ottla.client.admin.asking import one_by_one
from ottla.client.admin.configs import Change, ConfigAdmin, Operation
from ottla.client.admin.groups import GroupAdmin
from ottla.client.admin.topics import TopicAdmin
from ottla.client.admin.transactions import TransactionAdmin
from ottla.client.cluster import Cluster
from ottla.client.metadata import TopicInfo
from ottla.client.outcomes import Outcomes
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import ConfigSource, Resource, ResourceType

_OPEN: Final = ("Ongoing",)


@dataclass(frozen=True, slots=True)
class TenantHoldings:
    """Names that begin with a tenant's prefix, sorted."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]

    @property
    def data(self) -> str:
        """What a deletion would destroy, in words; empty if there is nothing."""
        counted = ((len(self.topics), "topic"), (len(self.groups), "group"))
        return " and ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counted if count)


class TenantHoldingsAdmin:
    """Finds and deletes what has a name with the prefix of a tenant."""

    def __init__(self, cluster: Cluster) -> None:
        self._configs = ConfigAdmin(cluster)
        self._groups = GroupAdmin(cluster)
        self._topics = TopicAdmin(cluster)
        self._transactions = TransactionAdmin(cluster)

    async def topics(self, prefix: str) -> list[TopicInfo]:
        return [each for each in await self._topics.all() if each.name.startswith(prefix)]

    async def find(self, prefix: str) -> TenantHoldings:
        return TenantHoldings(
            _sorted((each.name for each in await self._topics.all()), prefix),
            _sorted((each.group_id for each in await self._groups.all()), prefix),
            _sorted((each.transactional_id for each in await self._transactions.all()), prefix),
        )

    async def delete(self, prefix: str) -> tuple[str, ...]:
        """Delete it all, and return the transactional ids, which stay. Raise NON_EMPTY_GROUP, before topics are
        deleted, if a group has members.
        """
        opened = _sorted((each.transactional_id for each in await self._transactions.all(_OPEN)), prefix)
        _gone_or_done(await self._transactions.abort_each(opened), ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        found = await self.find(prefix)
        groups = await self._groups.delete_each(found.groups)
        occupied = [group for group, error in groups.failed.items() if _has_code(error, ErrorCode.NON_EMPTY_GROUP)]
        if occupied:
            raise ApiError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {occupied[0]} still has members: stop its clients, or wait until their sessions end, and "
                "delete the tenant again",
            )
        _gone_or_done(groups, ErrorCode.GROUP_ID_NOT_FOUND)
        topics = await self._topics.delete_each(found.topics)
        _gone_or_done(topics, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        configured = await self._configs.resources([ResourceType.GROUP])
        (await one_by_one((each for each in configured if each.name.startswith(prefix)), self._clear)).all()
        return found.transactional_ids

    async def _clear(self, group: Resource) -> None:
        """Take all settings of its own from a group."""
        entries = await self._configs.describe(group)
        own = [each.name for each in entries if each.source == ConfigSource.GROUP]
        await self._configs.alter(group, [Change(each, None, Operation.DELETE) for each in own])


def _sorted(names: Iterable[str], prefix: str) -> tuple[str, ...]:
    return tuple(sorted(each for each in names if each.startswith(prefix)))


def _has_code(error: Exception, code: ErrorCode) -> bool:
    return isinstance(error, ApiError) and error.code == code


def _gone_or_done(outcomes: Outcomes[str, None], gone: ErrorCode) -> None:
    """Raise the first failure that does not say that somebody else has deleted it meanwhile."""
    Outcomes(failed={name: error for name, error in outcomes.failed.items() if not _has_code(error, gone)}).all()
