"""Spark's own Kafka connector as consumer groups, without a word of code in the job.

The connector assigns partitions itself and commits nothing, so its queries are invisible to everything that shows
groups. But the client ids of its executors name the query: `consumer-<prefix>-<run>-<checkpoint>-executor-<n>`, where
the run is a UUID, new at each start, and the checkpoint a hash that stays. What those executors fetch from is noted
here, and once a second committed, as any outsider may, for the group `<prefix>-<checkpoint>`: from there on it is an
ordinary group to every tool, it survives a restart of the node, and expires like any other.

Rules:
- A position never goes back within a run: tasks that share a partition end in any order. A new run may begin earlier.
- A fetch from an offset tells that everything before it was handed to the task. So the position is exact when a query
  has caught up, and at most one fetched chunk behind while it runs.
- Names that do not look like this cost one search for a substring per fetch. The tables are bounded.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.client.errors import error_code
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.model.limits import SPARK_PARTITIONS_NOTED_MAX, SPARK_READERS_MAX
from ottla.model.settings.own import OTTLA_SPARK_GROUPS_ENABLE
from ottla.server.loop.later import Later

if TYPE_CHECKING:
    from ottla.cluster.state import ClusterState
    from ottla.server.api.context import Services
    from ottla.server.fetch.sessions import Wanted

log = logging.getLogger(__name__)

# What every executor's client id contains: the cheap question before the expensive one.
EXECUTOR = "-executor-"
METADATA = "fetched by Spark"  # stands beside the offsets, so that nobody takes them for a consumer's own commits
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CLIENT_ID = rf"consumer-(?P<prefix>.+)-(?P<run>{_UUID})-(?P<checkpoint>-?\d{{1,10}})-executor-\d+"
_UINT32 = 0xFFFFFFFF


@dataclass(slots=True)
class _Query:
    """How far one run of a query has come."""

    group_id: str
    run: str
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    changed: dict[TopicPartition, None] = field(default_factory=dict)

    def at(self, partition: TopicPartition, offset: int) -> None:
        known = self.positions.get(partition)
        if known is None and len(self.positions) >= SPARK_PARTITIONS_NOTED_MAX:
            return
        if known is None or offset > known:
            self.positions[partition] = offset
            self.changed[partition] = None


def query_of(client_id: str) -> tuple[str, str] | None:
    """The group and the run that an executor's client id stands for; None for everybody else's."""
    found = re.fullmatch(_CLIENT_ID, client_id)
    if found is None:
        return None
    # The hash is a signed number of Java's; two minus signs in a row look like a mistake.
    return f"{found['prefix']}-{int(found['checkpoint']) & _UINT32:08x}", found["run"]


class SparkReaders:
    def __init__(self) -> None:
        self._queries: dict[str, _Query] = {}  # by group, the longest silent first

    def noted(self, client_id: str, wanted: Iterable[Wanted], state: ClusterState) -> None:
        """An executor fetches: remember from where, as far as that exists."""
        named = query_of(client_id)
        if named is None:
            return
        query = self._query(*named)
        for each in wanted:
            by_id = isinstance(each.topic, bytes)
            topic = state.topic_by_id.get(each.topic) if by_id else state.topics.get(each.topic)  # type: ignore[arg-type]
            if topic is not None and 0 <= each.index < len(topic.partitions):
                query.at(TopicPartition(topic.name, each.index), each.ask.fetch_offset)

    def _query(self, group_id: str, run: str) -> _Query:
        query = self._queries.pop(group_id, None)
        if query is None or query.run != run:
            query = _Query(group_id, run)
        self._queries[group_id] = query
        if len(self._queries) > SPARK_READERS_MAX:
            del self._queries[next(iter(self._queries))]
        return query

    def commit(self, services: Services) -> None:
        """Store what changed, as commits for the groups; what cannot be stored now comes next time."""
        if not services.configs.broker[OTTLA_SPARK_GROUPS_ENABLE]:
            self._queries.clear()
            return
        for query in self._queries.values():
            if query.changed:
                self._commit(query, services)

    def _commit(self, query: _Query, services: Services) -> None:
        changed, query.changed = query.changed, {}

        def settle(error: ApiError | None) -> None:
            if error is not None:
                log.debug("offsets of Spark's group %s were not stored: %s", query.group_id, error)
                query.changed = changed | query.changed

        def ready(error: ApiError | None) -> None:
            topics = services.metadata.state.topics
            positions = {each: query.positions[each] for each in changed if each.topic in topics}
            if error is not None or not positions:
                settle(error)
                return
            elsewhere = services.groups.coordinators.elsewhere(query.group_id)
            commit = _commit_here if elsewhere is None else partial(_commit_elsewhere, elsewhere)
            commit(services, query.group_id, positions).then(settle)

        services.groups.coordinators.ensure_topic().then(ready)


def _commit_here(services: Services, group_id: str, positions: Mapping[TopicPartition, int]) -> Later[ApiError | None]:
    # A node that no Spark reads from needs no coordinator's code for this (ADR 0012).
    from ottla.groups.group import Committer
    from ottla.groups.offsets.commit import CommitOffsets, NewOffset

    topics = services.metadata.state.topics
    offsets = tuple(
        NewOffset(partition, offset, -1, METADATA, topics[partition.topic].id)
        for partition, offset in positions.items()
    )
    outsider = Committer(member_id="", instance_id=None, epoch=-1, request_version=0)
    return services.groups.submit(group_id, CommitOffsets(group_id, outsider, offsets)).map(
        lambda reply: reply if isinstance(reply, ApiError) else None
    )


def _commit_elsewhere(
    node_id: int, services: Services, group_id: str, positions: Mapping[TopicPartition, int]
) -> Later[ApiError | None]:
    from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest

    by_topic: dict[str, list[OffsetCommitRequest.Topic.Partition]] = {}
    for (name, index), offset in positions.items():
        by_topic.setdefault(name, []).append(
            OffsetCommitRequest.Topic.Partition(
                partition_index=index, committed_offset=offset, committed_metadata=METADATA
            )
        )
    topics = services.metadata.state.topics
    request = OffsetCommitRequest(
        group_id=group_id,
        member_id="",
        topics=[
            OffsetCommitRequest.Topic(name=name, topic_id=topics[name].id, partitions=partitions)
            for name, partitions in by_topic.items()
        ],
    )

    def outcome(answer: Any) -> ApiError | None:
        if isinstance(answer, ApiError):
            return answer
        codes = [each.error_code for topic in answer.topics for each in topic.partitions if each.error_code]
        return ApiError(error_code(codes[0])) if codes else None

    return services.peer_requests.ask(node_id, request, "offsets").map(outcome)
