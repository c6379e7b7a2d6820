"""The guard of OffsetFetch: DESCRIBE on each group, and on each topic.

Offsets of topics that one may not describe are left out if all are asked for, and refused if they are named. The
group's own error, such as a stale member epoch, comes first.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import Steps, kept, reviewed
from ottla.server.api.guard.checks import decisions_of, may_describe, sees
from ottla.server.api.guard.refusal import Paths, blank, mirrored
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.server.loop.slices import Tally
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

GroupAnswer = OffsetFetchResponse.Group
# What is asked of a group, what is told of it, and what is told of a topic, in versions for one group and for many.
AskedT = TypeVar("AskedT", OffsetFetchRequest, OffsetFetchRequest.Group)
GroupAnswerT = TypeVar("GroupAnswerT", OffsetFetchResponse, OffsetFetchResponse.Group)
TopicT = TypeVar("TopicT", OffsetFetchResponse.Topic, OffsetFetchResponse.Group.Topics)

_FIRST_VERSION_OF_MANY = OffsetFetchRequest.since("groups")
_FIRST_VERSION_WITH_ERROR = OffsetFetchResponse.since("error_code")
_TOPICS = Paths.between("topics.partition_indexes", "topics.partitions:partition_index")
_NO_OFFSET = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}


def guard(handler: Handler) -> Handler:
    def offset_fetch(request: OffsetFetchRequest, context: Context) -> Answer[OffsetFetchResponse]:
        version, decisions = context.request_version, decisions_of(context)
        if version < _FIRST_VERSION_OF_MANY:
            return _one(request, version, handler, context, decisions)
        return _many(request, version, handler, context, decisions)

    return offset_fetch


def _one(
    request: OffsetFetchRequest, version: int, handler: Handler, context: Context, decisions: Decisions
) -> Answer[OffsetFetchResponse]:
    if not _may_describe_group(request.group_id, decisions):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        named = (request.topics or ()) if version < _FIRST_VERSION_WITH_ERROR else ()
        return OffsetFetchResponse(topics=_refused(named, OffsetFetchResponse.Topic, version, code), error_code=code)
    asked, refused = _divided(request, OffsetFetchResponse.Topic, version, decisions, context)
    return reviewed(
        handler(asked, context),
        lambda response: _review(response, refused, request.topics is None, decisions, _tally()),
        context.runtime.slices,
    )


def _many(
    request: OffsetFetchRequest, version: int, handler: Handler, context: Context, decisions: Decisions
) -> Answer[OffsetFetchResponse]:
    asked, refused, hidden = [], [], []
    for group in request.groups:
        is_hidden = not _may_describe_group(group.group_id, decisions)
        hidden.append(is_hidden)
        if not is_hidden:
            some, errors = _divided(group, GroupAnswer.Topics, version, decisions, context)
            asked.append(some)
            refused.append((errors, group.topics is None))

    def review(response: OffsetFetchResponse) -> Steps[OffsetFetchResponse]:
        tally = _tally()
        for answer, (errors, is_all) in zip(response.groups, refused, strict=True):
            yield from _review(answer, errors, is_all, decisions, tally)
        found = iter(response.groups)
        response.groups = [
            _hidden_group(group.group_id, version) if is_hidden else next(found)
            for group, is_hidden in zip(request.groups, hidden, strict=True)
        ]
        return response

    if not asked:
        return OffsetFetchResponse(groups=[_hidden_group(group.group_id, version) for group in request.groups])
    rest = copy.copy(request)
    rest.groups = asked
    return reviewed(handler(rest, context), review, context.runtime.slices)


def _hidden_group(group_id: str, version: int) -> GroupAnswer:
    return blank(GroupAnswer, version, {"group_id": group_id, "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED})


def _may_describe_group(group_id: str, decisions: Decisions) -> bool:
    return decisions.allows(AclOperation.DESCRIBE, AclResourceType.GROUP, group_id)


def _divided(
    asked: AskedT, answer: type[TopicT], version: int, decisions: Decisions, context: Context
) -> tuple[AskedT, list[TopicT]]:
    """Return what is asked of a group without the topics that are refused, and the answers for those."""
    if asked.topics is None:
        return asked, []
    names = [_name(topic, context) for topic in asked.topics]
    refused = [bool(name) and not may_describe(name, decisions) for name in names]
    if not any(refused):
        return asked, []
    some = copy.copy(asked)
    some.topics = [topic for topic, is_refused in zip(asked.topics, refused, strict=True) if not is_refused]
    rest = [topic for topic, is_refused in zip(asked.topics, refused, strict=True) if is_refused]
    return some, _refused(rest, answer, version, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _refused(topics: Sequence[object], answer: type[TopicT], version: int, code: ErrorCode) -> list[TopicT]:
    return mirrored(topics, _TOPICS, answer, version, {**_NO_OFFSET, "error_code": code})


def _name(topic: OffsetFetchRequest.Topic | OffsetFetchRequest.Group.Topics, context: Context) -> str:
    """Return a topic's name; an id without a topic has none, and the handler says so."""
    if isinstance(topic, OffsetFetchRequest.Topic) or topic.topic_id == NO_ID:
        return topic.name
    return context.member.state.topic_name(topic.topic_id) or ""


def _tally() -> Tally:
    return Tally(limits.DECISIONS_PER_SLICE)


def _review(
    answer: GroupAnswerT, refused: Sequence[Any], is_all: bool, decisions: Decisions, tally: Tally
) -> Steps[GroupAnswerT]:
    """Complete the answer about a group: leave out what may not be seen, or add what was refused."""
    if answer.error_code:
        return answer
    if is_all:
        answer.topics = yield from kept(answer.topics, lambda topic: sees(topic.name, decisions), tally)
    answer.topics += refused
    return answer
