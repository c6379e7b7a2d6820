"""The common part of handlers that describe groups of one kind: many groups, each with its own answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from ottla.groups.machine import GroupCommand
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.authorized_operations import GROUP_OPERATIONS, NOT_ASKED
from ottla.server.api.context import Context
from ottla.server.loop.later import Answer, Later, gather, settled

# The error message of a group that is hidden from a client.
HIDDEN_TEXT = "The group has a topic that the client is not authorized to describe."

TopicT = TypeVar("TopicT")
ResponseT = TypeVar("ResponseT")


class DescribeRequest(Protocol):
    group_ids: list[str]
    include_authorized_operations: bool


class Description(Protocol):
    """What the coordinator says of a group of any kind."""

    @property
    def epoch(self) -> int: ...

    @property
    def assignment_epoch(self) -> int: ...


DescriptionT = TypeVar("DescriptionT", bound=Description)


class DescribeForm(NamedTuple, Generic[DescriptionT, ResponseT]):
    """How groups of one kind are described."""

    response: Callable[..., ResponseT]  # takes `groups`
    group: Callable[..., object]
    require_protocol: Callable[[Context], None]  # raises ApiError if this kind of group is not enabled
    command: Callable[[str], GroupCommand[DescriptionT]]  # the command to the group's coordinator
    # the fields of a described group, except those of all kinds
    fields: Callable[[DescriptionT, Context], Mapping[str, object]]
    blank: Mapping[str, object]  # these fields if there is an error instead of a group


def describe_groups(
    request: DescribeRequest, context: Context, form: DescribeForm[DescriptionT, ResponseT]
) -> Answer[ResponseT]:
    """Have each group described by its coordinator; the description or the error is the group's answer."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED

    def answer(group_id: str, value: DescriptionT | ApiError) -> object:
        if isinstance(value, ApiError):
            return form.group(
                error_code=value.code,
                error_message=value.message,
                group_id=group_id,
                group_state="",
                group_epoch=0,
                assignment_epoch=0,
                members=[],
                **form.blank,
            )
        return form.group(
            error_code=ErrorCode.NONE,
            group_id=group_id,
            group_epoch=value.epoch,
            assignment_epoch=value.assignment_epoch,
            authorized_operations=operations,
            **form.fields(value, context),
        )

    def describe(group_id: str) -> Later[object]:
        return _ask(group_id, context, form).map(lambda value: answer(group_id, value))

    groups = gather([describe(group_id) for group_id in request.group_ids])
    return groups.map(lambda found: form.response(groups=found)).soonest()


def _ask(
    group_id: str, context: Context, form: DescribeForm[DescriptionT, ResponseT]
) -> Later[DescriptionT | ApiError]:
    try:
        form.require_protocol(context)
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
    except ApiError as error:
        return settled(error)
    return context.groups.submit(group_id, form.command(group_id))


def named_partitions(
    assigned: Mapping[bytes, Collection[int]], context: Context, topic_partitions: Callable[..., TopicT]
) -> list[TopicT]:
    """Return an assignment by topic ids with the topics' names. Deleted topics have none and are left out."""
    topics = context.member.state.topic_by_id
    return [
        topic_partitions(topic_id=each, topic_name=topics[each].name, partitions=sorted(assigned[each]))
        for each in sorted(assigned)
        if each in topics
    ]
