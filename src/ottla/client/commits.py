"""Committed offsets of one group: OffsetCommit and OffsetFetch.

Rules:
- Versions that name topics by id are used when every id is known, older ones otherwise.
- A commit is for the whole call: the first partition's error is raised, after the coordinator had its chance to get
  well (`Coordinator.call`). `CommitFailed` means that the group has gone on without this member.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.coordinator import Coordinator
from ottla.client.errors import CommitFailed, check, error_code
from ottla.client.group_metadata import GroupMetadata
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

_COMMIT_BY_ID_SINCE = 10
_FETCH_BY_ID_SINCE = 10
_GONE_ON = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
)
_STALE_TOPIC = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class OffsetAndMetadata(NamedTuple):
    """A committed position: the next offset to read, the epoch of the record before it, and a note."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class GroupOffsets:
    """The offsets that one group keeps at its coordinator."""

    def __init__(self, cluster: Cluster, coordinator: Coordinator, group_id: str) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._group_id = group_id

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: GroupMetadata) -> None:
        """Store positions in the name of a member (or of nobody, outside a group's own assignment)."""
        if not offsets:
            return
        ids = await self._topic_ids(offsets)
        topics: dict[str, OffsetCommitRequest.Topic] = {}
        for (name, index), place in sorted(offsets.items()):
            topic = topics.setdefault(name, OffsetCommitRequest.Topic(name=name, topic_id=ids[name], partitions=[]))
            topic.partitions.append(
                OffsetCommitRequest.Topic.Partition(
                    partition_index=index,
                    committed_offset=place.offset,
                    committed_leader_epoch=place.leader_epoch,
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
        at_most = _COMMIT_BY_ID_SINCE - 1 if NO_ID in ids.values() else None
        answer = await self._coordinator.call(
            request, OffsetCommitResponse, error_of=_retriable_commit_error, at_most=at_most
        )
        code = _commit_error(answer)
        if code in _STALE_TOPIC:
            for name in ids:
                self._cluster.metadata.mark_stale(name)
        if code in _GONE_ON:
            raise CommitFailed(code, "the group has rebalanced without this member: its partitions may be another's")
        check(code)

    async def fetch_all(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Everything that is committed."""
        group = OffsetFetchRequest.Group(group_id=self._group_id, topics=None)
        request = OffsetFetchRequest(group_id=self._group_id, topics=None, groups=[group], require_stable=True)
        # Before topics had ids in it: the answer then names topics that this client has never heard of.
        answer = await self._coordinator.call(
            request, OffsetFetchResponse, error_of=_fetch_error, at_most=_FETCH_BY_ID_SINCE - 1
        )
        return _found(answer, {})

    async def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is committed; partitions without a committed offset are left out."""
        wanted: dict[str, list[int]] = {}
        for topic, index in partitions:
            wanted.setdefault(topic, []).append(index)
        if not wanted:
            return {}
        ids = await self._topic_ids(TopicPartition(name, 0) for name in wanted)
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
        answer = await self._coordinator.call(request, OffsetFetchResponse, error_of=_fetch_error, at_most=at_most)
        return _found(answer, {topic_id: name for name, topic_id in ids.items()})

    async def _topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, bytes]:
        ids: dict[str, bytes] = {}
        for name, _ in partitions:
            if name not in ids:
                try:
                    ids[name] = (await self._cluster.topic(name)).topic_id
                except ApiError:
                    ids[name] = NO_ID  # the coordinator says what is wrong with it
        return ids


def _found(answer: OffsetFetchResponse, names: Mapping[bytes, str]) -> dict[TopicPartition, OffsetAndMetadata]:
    check(_fetch_error(answer))
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for old in answer.topics:
        for at in old.partitions:
            place = OffsetAndMetadata(at.committed_offset, at.committed_leader_epoch, at.metadata or "")
            found[TopicPartition(old.name, at.partition_index)] = place
    for new in (each for group_answer in answer.groups for each in group_answer.topics):
        for each in new.partitions:
            place = OffsetAndMetadata(each.committed_offset, each.committed_leader_epoch, each.metadata or "")
            found[TopicPartition(new.name or names[new.topic_id], each.partition_index)] = place
    return {partition: place for partition, place in found.items() if place.offset >= 0}


def _commit_error(answer: OffsetCommitResponse) -> ErrorCode:
    codes = [error_code(each.error_code) for topic in answer.topics for each in topic.partitions if each.error_code]
    return codes[0] if codes else ErrorCode.NONE


def _retriable_commit_error(answer: OffsetCommitResponse) -> ErrorCode:
    """A topic that was deleted will not come back by asking again."""
    code = _commit_error(answer)
    return ErrorCode.NONE if code in _STALE_TOPIC else code


def _fetch_error(answer: OffsetFetchResponse) -> ErrorCode:
    codes = [answer.error_code, *(group.error_code for group in answer.groups)]
    codes += [each.error_code for topic in answer.topics for each in topic.partitions]
    codes += [each.error_code for group in answer.groups for topic in group.topics for each in topic.partitions]
    real = [error_code(code) for code in codes if code and error_code(code) not in _STALE_TOPIC]
    return real[0] if real else ErrorCode.NONE
