"""DeleteTopics: delete topics by name or by id; each succeeds or fails by itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from ottla.cluster.entities import Topic
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.settings.node import DELETE_TOPIC_ENABLE
from ottla.security.quotas.mutations import PartitionQuota
from ottla.wire.journal import cluster_metadata as journal


class DoomedTopic(NamedTuple):
    """A topic to delete: a name or an id, not both."""

    name: str | None = None
    id: bytes = NO_ID


class TopicDeletion(NamedTuple):
    """The result for one topic."""

    name: str | None
    id: bytes
    error: ApiError | None


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """Replies with a TopicDeletion for each topic; refuses the whole request when `delete.topic.enable` is off."""

    topics: tuple[DoomedTopic, ...]
    quota: PartitionQuota | None = None

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, list[TopicDeletion]]:
        if not view.defaults[DELETE_TOPIC_ENABLE]:
            raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED)
        found: dict[bytes, Topic] = {}
        deletions: list[TopicDeletion] = []
        times = Counter(self.topics)
        for doomed, count in times.items():
            try:
                topic = _find(view, doomed, count)
            except ApiError as error:
                deletions.append(TopicDeletion(doomed.name, doomed.id, error))
                continue
            if found.pop(topic.id, None) is None:
                found[topic.id] = topic
            else:  # the request has both the id and the name of one topic: like Kafka, delete neither
                twice = _invalid("The provided topic name maps to an ID that was already supplied.")
                deletions.append(TopicDeletion(topic.name, topic.id, twice))
        if self.quota is not None:
            self.quota.begin()
        records = []
        for topic in found.values():
            try:
                if self.quota is not None:
                    self.quota.take(len(topic.partitions))
            except ApiError as refused:
                deletions.append(TopicDeletion(topic.name, topic.id, refused))
                continue
            records.append(MetadataEntry(journal.RemoveTopicRecord(topic_id=topic.id)))
            deletions.append(TopicDeletion(topic.name, topic.id, None))
        return Result(records, deletions)


def _find(view: MetadataView, doomed: DoomedTopic, count: int) -> Topic:
    if doomed.name is None:
        if doomed.id == NO_ID:
            raise _invalid("Neither topic name nor id were specified.")
        if count > 1:
            raise _invalid("Duplicate topic id.")
        topic = view.state.topic_by_id.get(doomed.id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic
    if doomed.id != NO_ID:
        raise _invalid("You may not specify both topic name and topic id.")
    if count > 1:
        raise _invalid("Duplicate topic name.")
    topic = view.state.topics.get(doomed.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
