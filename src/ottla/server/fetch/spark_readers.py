"""Consumer groups for queries of Spark's own Kafka connector, without a change in the job.

The connector assigns partitions itself and commits nothing, so its queries are invisible to all tools that show groups.
But the client ids of its executors name the query: `consumer-<prefix>-<run>-<checkpoint>-executor-<n>`, where the run
is a UUID, new at each start, and the checkpoint a hash that stays. The fetch offsets of those executors are noted here,
and once a second committed for the group `<prefix>-<checkpoint>`, as a client that is no member may do: from then on it
is an ordinary group for every tool, survives a restart of the node, and expires like any other.

Rules:
- A position never goes back within a run: tasks that share a partition end in any order. A new run may begin earlier.
- A fetch from an offset means that everything before it was handed to the task. So the position is exact when a query
  has caught up, and at most one fetched chunk behind while it runs.
- Other client ids cost one search for a substring per fetch. The tables are bounded.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ottla.cluster.state import ClusterState
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.limits import SPARK_PARTITIONS_NOTED_MAX, SPARK_READERS_MAX
from ottla.model.settings.own import OTTLA_SPARK_GROUPS_ENABLE
from ottla.server.fetch.fetch_sessions import AskedPartition
from ottla.server.loop.later import Later
from ottla.server.settings.configs import Configs

log = logging.getLogger(__name__)

# A part of every executor's client id, for a cheap check before the regular expression.
EXECUTOR = "-executor-"
METADATA = "fetched by Spark"  # the metadata of these commits, which distinguishes them from a consumer's own
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CLIENT_ID = rf"consumer-(?P<prefix>.+)-(?P<run>{_UUID})-(?P<checkpoint>-?\d{{1,10}})-executor-\d+"
_UINT32 = 0xFFFFFFFF

# Commits offsets of a group with a metadata text; the answer is None, or the error.
Commit = Callable[[str, Mapping[TopicPartition, int], str], Later[ApiError | None]]


@dataclass(slots=True)
class _Query:
    """The positions of one run of a query."""

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
    """Return the group id and the run in an executor's client id; None for other client ids."""
    found = re.fullmatch(_CLIENT_ID, client_id)
    if found is None:
        return None
    # The hash is a signed Java int; as unsigned it avoids two minus signs in a row.
    return f"{found['prefix']}-{int(found['checkpoint']) & _UINT32:08x}", found["run"]


class SparkReaders:
    def __init__(self, configs: Configs, state: Callable[[], ClusterState], commit: Commit) -> None:
        self._configs = configs
        self._state = state
        self._commit = commit
        self._queries: dict[str, _Query] = {}  # by group; the query that fetched longest ago comes first

    def noted(self, client_id: str, wanted: Iterable[AskedPartition]) -> None:
        """Remember the offsets from which an executor fetches, for existing partitions."""
        named = query_of(client_id)
        if named is None:
            return
        query, state = self._query(*named), self._state()
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

    def commit(self) -> None:
        """Commit the positions that changed for their groups; failed commits are tried again next time."""
        if not self._configs.broker[OTTLA_SPARK_GROUPS_ENABLE]:
            self._queries.clear()
            return
        for query in self._queries.values():
            if query.changed:
                self._commit_query(query)

    def _commit_query(self, query: _Query) -> None:
        changed, query.changed = query.changed, {}

        def settle(error: ApiError | None) -> None:
            if error is not None:
                log.debug("offsets of Spark's group %s were not stored: %s", query.group_id, error)
                query.changed = changed | query.changed

        positions = {partition: query.positions[partition] for partition in changed}
        self._commit(query.group_id, positions, METADATA).then(
            settle, lambda: settle(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR))
        )
