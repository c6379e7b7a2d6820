"""Committed offsets of one group: OffsetCommit and OffsetFetch.

Rules:
- Request versions with topic ids are used when every id is known, older ones otherwise.
- Every partition has its own outcome, as the coordinator returns it: partitions that were stored count, even if others
  failed. Transient errors are retried: for all partitions if the error is the coordinator's (`Coordinator.call`), else
  only for the partitions that failed.
- `CommitFailed` means that the group has gone on without this member.
- Only the coordinator says that a partition has no committed offset. A partition whose answer is an error, or missing,
  does not count as one without an offset: a consumer would begin elsewhere, and skip records.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.client.checks import (
    checked_name,
    checked_number,
    checked_offset,
    checked_partition,
    checked_partitions,
    kind_of,
)
from ottla.client.cluster import Cluster
from ottla.client.consumer.group_metadata import GroupMetadata
from ottla.client.coordinator import Coordinator
from ottla.client.errors import ClientError, CommitFailed, check, error_code
from ottla.client.outcomes import Outcomes
from ottla.client.retried_parts import settle
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, LeaderEpoch, TopicPartition
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

_COMMIT_BY_ID_SINCE = OffsetCommitRequest.Topic.since("topic_id")
_FETCH_BY_ID_SINCE = OffsetFetchRequest.Group.Topics.since("topic_id")
_GONE_ON = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
)
_GONE_ON_TEXT = "the group has rebalanced without this member: its partitions may be another's"
_STALE_TOPIC = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_UNANSWERED = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the coordinator gave no answer for this partition")


class OffsetAndMetadata(NamedTuple):
    """A committed position: the next offset to read, the leader epoch of the record before it, and metadata."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def asked_positions(
    offsets: Mapping[TopicPartition, int | tuple[int, int, str]],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the caller's offsets in the form in which they are committed."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f"a mapping of partitions to offsets is needed, not {kind_of(offsets)}")
    return {
        partition: _asked_position(partition, place)
        for partition, place in ((checked_partition(each), place) for each, place in offsets.items())
    }


def _asked_position(partition: TopicPartition, place: int | tuple[int, int, str]) -> OffsetAndMetadata:
    if not isinstance(place, tuple):
        return OffsetAndMetadata(checked_offset(partition, place))
    found = OffsetAndMetadata(*place)
    return OffsetAndMetadata(
        checked_offset(partition, found.offset),
        checked_number(found.leader_epoch, "leader_epoch"),
        checked_name(found.metadata, "metadata"),
    )


class GroupOffsets:
    """The committed offsets of one group at its coordinator."""

    def __init__(self, cluster: Cluster, coordinator: Coordinator, group_id: str) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._group_id = group_id

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        member: GroupMetadata,
        topic_ids: Mapping[TopicPartition, bytes] | None = None,
    ) -> Outcomes[TopicPartition, OffsetAndMetadata]:
        """Commit offsets as a member (or without a member, outside a group's own assignment). If the id of the topic
        in which they were read is known, they are not stored for another topic of the same name.
        """

        async def attempt(partitions: list[TopicPartition]) -> Outcomes[TopicPartition, OffsetAndMetadata]:
            outcomes: Outcomes[TopicPartition, OffsetAndMetadata] = Outcomes()
            try:
                found = await self._topic_ids(partitions)
                ids = {each: _known(topic_ids, each) or found[each.topic] for each in partitions}
                for is_named in (False, True):  # a request has either ids for all topics or for none
                    some = {each: offsets[each] for each in partitions if (ids[each] == NO_ID) == is_named}
                    if some:
                        outcomes.add(await self._commit_once(some, ids, member))
            except (ApiError, ClientError) as error:
                left = [each for each in partitions if each not in outcomes.found and each not in outcomes.failed]
                outcomes.failed.update(dict.fromkeys(left, error))
            return outcomes

        return await settle(self._cluster, offsets, attempt, is_over=_is_stale_topic)

    async def _commit_once(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        ids: Mapping[TopicPartition, bytes],
        member: GroupMetadata,
    ) -> Outcomes[TopicPartition, OffsetAndMetadata]:
        topics: dict[tuple[str, bytes], OffsetCommitRequest.Topic] = {}
        for partition, place in sorted(offsets.items()):
            name, index = partition
            topic = OffsetCommitRequest.Topic(name=name, topic_id=ids[partition], partitions=[])
            topic = topics.setdefault((name, ids[partition]), topic)
            topic.partitions.append(
                OffsetCommitRequest.Topic.Partition(
                    partition_index=index,
                    committed_offset=place.offset,
                    committed_leader_epoch=LeaderEpoch(place.leader_epoch),
                    committed_metadata=place.metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            topics=list(topics.values()),
        )
        names = {topic_id: name for name, topic_id in topics}
        at_most = _COMMIT_BY_ID_SINCE - 1 if NO_ID in names else None
        answer = await self._coordinator.call(request, error_of=_common_error, at_most=at_most)
        outcomes: Outcomes[TopicPartition, OffsetAndMetadata] = Outcomes(failed=dict.fromkeys(offsets, _UNANSWERED))
        for told in answer.topics:
            name = told.name or names.get(told.topic_id, "")
            for each in told.partitions:
                partition, code = TopicPartition(name, each.partition_index), error_code(each.error_code)
                if partition not in offsets:
                    continue
                if code in _STALE_TOPIC:
                    self._cluster.metadata.mark_stale(name)
                if code in _GONE_ON:
                    outcomes.failed[partition] = CommitFailed(code, _GONE_ON_TEXT)
                elif code:
                    outcomes.failed[partition] = ApiError(code)
                else:
                    outcomes.failed.pop(partition, None)
                    outcomes.found[partition] = offsets[partition]
        return outcomes

    async def fetch_all(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return all committed offsets of the group."""
        return (await self.fetch_all_each()).all()

    async def fetch_all_each(self) -> Outcomes[TopicPartition, OffsetAndMetadata]:
        """Return all committed offsets of the group, with an outcome per partition. Deleted topics have none."""
        group = OffsetFetchRequest.Group(group_id=self._group_id, topics=None)
        request = OffsetFetchRequest(group_id=self._group_id, topics=None, groups=[group], require_stable=True)
        # In the last version before topic ids: the answer may name topics that are not in this client's metadata.
        answer = await self._coordinator.call(request, error_of=_group_error, at_most=_FETCH_BY_ID_SINCE - 1)
        check(_group_error(answer))
        outcomes: Outcomes[TopicPartition, OffsetAndMetadata] = Outcomes()
        for partition, place, code in _places(answer, {}):
            if code and code not in _STALE_TOPIC:
                outcomes.failed[partition] = ApiError(code)
            elif not code and place.offset >= 0:
                outcomes.found[partition] = place
        passing = [partition for partition, error in outcomes.failed.items() if self._cluster.passes(error)]
        later = await self.fetch(passing)
        for partition in passing:
            del outcomes.failed[partition]
        outcomes.found.update({partition: place for partition, place in later.found.items() if place is not None})
        outcomes.failed.update(later.failed)
        return outcomes

    async def fetch(self, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets; None for partitions without one."""
        return await settle(self._cluster, checked_partitions(partitions), self.fetch_once)

    async def fetch_once(
        self, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets as `fetch` does, but without retries for single partitions."""
        return (await self.fetch_with_ids(partitions))[1]

    async def fetch_with_ids(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[Mapping[str, bytes], Outcomes[TopicPartition, OffsetAndMetadata | None]]:
        """Return the committed offsets, and the known ids of the topics for which they were committed."""
        wanted: dict[str, list[int]] = {}
        for topic, index in partitions:
            wanted.setdefault(topic, []).append(index)
        asked = [TopicPartition(topic, index) for topic, indexes in wanted.items() for index in indexes]
        outcomes: Outcomes[TopicPartition, OffsetAndMetadata | None] = Outcomes()
        if not wanted:
            return {}, outcomes
        try:
            ids = await self._topic_ids(asked)
            answer = await self._ask_for(wanted, ids)
            check(_group_error(answer))
        except (ApiError, ClientError) as error:
            return {}, Outcomes(failed=dict.fromkeys(asked, error))
        outcomes.failed.update(dict.fromkeys(asked, _UNANSWERED))
        names = {topic_id: name for name, topic_id in ids.items()}
        for partition, place, code in _places(answer, names):
            if partition not in outcomes.failed:
                continue
            if code in _STALE_TOPIC:
                self._cluster.metadata.mark_stale(partition.topic)
            if code:
                outcomes.failed[partition] = ApiError(code)
            else:
                del outcomes.failed[partition]
                outcomes.found[partition] = place if place.offset >= 0 else None
        return ids, outcomes

    async def _ask_for(self, wanted: Mapping[str, list[int]], ids: Mapping[str, bytes]) -> OffsetFetchResponse:
        by_id = OffsetFetchRequest.Group.Topics
        group = OffsetFetchRequest.Group(
            group_id=self._group_id,
            topics=[by_id(name=name, topic_id=ids[name], partition_indexes=each) for name, each in wanted.items()],
        )
        request = OffsetFetchRequest(
            group_id=self._group_id,
            topics=[OffsetFetchRequest.Topic(name=name, partition_indexes=each) for name, each in wanted.items()],
            groups=[group],
            require_stable=True,
        )
        at_most = _FETCH_BY_ID_SINCE - 1 if NO_ID in ids.values() else None
        return await self._coordinator.call(request, error_of=_group_error, at_most=at_most)

    async def _topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, bytes]:
        """Return the known ids of the topics; NO_ID for others, about which the coordinator then returns an error."""
        names = dict.fromkeys(name for name, _ in partitions)
        known = self._cluster.metadata.topics
        unknown = [name for name in names if self._cluster.metadata.fresh(name) is None]
        if unknown:
            await self._cluster.refresh(unknown)
        return {name: known[name].topic_id if name in known else NO_ID for name in names}


def _known(topic_ids: Mapping[TopicPartition, bytes] | None, partition: TopicPartition) -> bytes | None:
    topic_id = NO_ID if topic_ids is None else topic_ids.get(partition, NO_ID)
    return None if topic_id == NO_ID else topic_id


def _places(
    answer: OffsetFetchResponse, names: Mapping[bytes, str]
) -> Iterator[tuple[TopicPartition, OffsetAndMetadata, ErrorCode]]:
    """Yield the partitions of an answer of any version."""
    for old in answer.topics:
        for at in old.partitions:
            place = OffsetAndMetadata(at.committed_offset, at.committed_leader_epoch, at.metadata or "")
            yield TopicPartition(old.name, at.partition_index), place, error_code(at.error_code)
    for new in (topic for group in answer.groups for topic in group.topics):
        name = new.name or names.get(new.topic_id, "")
        for each in new.partitions:
            place = OffsetAndMetadata(each.committed_offset, each.committed_leader_epoch, each.metadata or "")
            yield TopicPartition(name, each.partition_index), place, error_code(each.error_code)


def _common_error(answer: OffsetCommitResponse) -> ErrorCode:
    """Return the error of the coordinator itself: the code that all partitions have in common."""
    codes = {error_code(each.error_code) for topic in answer.topics for each in topic.partitions}
    code = codes.pop() if len(codes) == 1 else ErrorCode.NONE
    return ErrorCode.NONE if code in _STALE_TOPIC else code


def _group_error(answer: OffsetFetchResponse) -> ErrorCode:
    codes = [answer.error_code, *(group.error_code for group in answer.groups)]
    return next((error_code(code) for code in codes if code), ErrorCode.NONE)


def _is_stale_topic(error: Exception) -> bool:
    """Return whether the error means a deleted topic, for which a retry does not help."""
    return isinstance(error, ApiError) and error.code in _STALE_TOPIC
