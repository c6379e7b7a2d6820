"""The form of a Metadata request, which its guard and its handler must see alike: as a whole, before it is divided."""

from __future__ import annotations

import copy

from ottla.model.ids import NO_ID
from ottla.wire.messages.topics.metadata import MetadataRequest

_FIRST_WITH_IDS = 12
_FIRST_WITH_NULL_FOR_ALL = MetadataRequest.null_since("topics")


def is_malformed(request: MetadataRequest, version: int) -> bool:
    """Return whether the whole request is refused for its form."""
    topics = request.topics or ()
    if version < _FIRST_WITH_IDS:
        return any(topic.name is None or topic.topic_id != NO_ID for topic in topics)
    return any(topic.name is None and topic.topic_id == NO_ID for topic in topics)


def is_for_all(request: MetadataRequest, version: int) -> bool:
    """Return whether all topics are asked for: by null, and before null was possible by an empty list."""
    return request.topics is None or (not request.topics and version < _FIRST_WITH_NULL_FOR_ALL)


def is_by_id(request: MetadataRequest) -> bool:
    """Return whether topics are asked for by id: one id makes it a request by ids."""
    return any(topic.topic_id != NO_ID for topic in request.topics or ())


def without_ignored_names(request: MetadataRequest) -> MetadataRequest:
    """Return the request without the names beside ids, which are ignored, as with Kafka."""
    if not request.topics or not is_by_id(request):
        return request
    some = copy.copy(request)
    some.topics = [topic for topic in request.topics if topic.topic_id != NO_ID]
    return some
