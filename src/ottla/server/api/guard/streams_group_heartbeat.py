"""The guard of StreamsGroupHeartbeat: DESCRIBE on every topic of the member's topology, and rights on the dead-letter
topics that the settings of its internal topics name.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.names import is_internal, topic_name_problem
from ottla.model.resources import Resource, ResourceType
from ottla.server.api.context import Context
from ottla.server.api.guard.checks import may_describe, values
from ottla.server.api.guard.letter_topics import refusal_of
from ottla.server.api.guard.many import with_allowed
from ottla.server.api.guard.refusal import blank
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

_TOPICS = [
    ["subtopologies", "source_topics"],
    ["subtopologies", "repartition_sink_topics"],
    ["subtopologies", "repartition_source_topics", "name"],
    ["subtopologies", "state_changelog_topics", "name"],
]

_CREATED = [["subtopologies", "repartition_source_topics"], ["subtopologies", "state_changelog_topics"]]


def guard(handler: Handler) -> Handler:
    def heartbeat(request: StreamsGroupHeartbeatRequest, context: Context) -> Answer[StreamsGroupHeartbeatResponse]:
        named = dict.fromkeys(name for path in _TOPICS for name in values(request.topology, path))
        # Names that no topic can have are refused by the handler; the others are checked in any case.
        names = dict.fromkeys(name for name in named if not is_internal(name) and topic_name_problem(name) is None)

        def go_on(allowed: set[str]) -> Answer[StreamsGroupHeartbeatResponse]:
            given: dict[str, object] = {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
            if len(allowed) == len(names):
                problem = _letters_problem(request, context)
                if problem is None:
                    return handler(request, context)
                given["error_message"] = problem
            return blank(StreamsGroupHeartbeatResponse, version, given)

        version = context.request_version
        return with_allowed(names, lambda decisions, name: may_describe(name, decisions), go_on, context)

    return heartbeat


def _letters_problem(request: StreamsGroupHeartbeatRequest, context: Context) -> str | None:
    """Return why the client may not have an internal topic created with the settings that it names, or None."""
    for path in _CREATED:
        for topic in values(request.topology, path):
            configs = {each.key: each.value for each in topic.topic_configs}
            problem = refusal_of(Resource(ResourceType.TOPIC, topic.name), configs, context, {}) if configs else None
            if problem is not None:
                return problem
    return None
