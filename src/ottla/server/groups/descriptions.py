"""What the handlers that describe groups of one kind have in common: many names, each answered on its own account."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.authorized_operations import GROUP_OPERATIONS, NOT_ASKED
from ottla.server.api.context import Context
from ottla.server.loop.later import Later, gather

GroupT = TypeVar("GroupT")


def authorized_operations(asked: bool) -> int:
    """What the client may do with a group, if it wants to know."""
    return GROUP_OPERATIONS if asked else NOT_ASKED


def describe_each(
    context: Context,
    group_ids: Sequence[str],
    check_enabled: Callable[[Context], None],
    command: Callable[[str], Any],
    described: Callable[[str, Any], GroupT],
    refused: Callable[[str, ApiError], GroupT],
) -> Later[list[GroupT]]:
    """`command(group_id)` is put to the group's coordinator; its reply or refusal becomes the group's answer."""

    def ask(group_id: str) -> Later[Any]:
        reply: Later[Any] = Later()
        try:
            check_enabled(context)
        except ApiError as error:
            reply.set(error)
            return reply
        if not group_id:
            reply.set(ApiError(ErrorCode.INVALID_GROUP_ID))
            return reply
        return context.groups.submit(group_id, command(group_id))

    def answer(group_id: str) -> Later[GroupT]:
        return ask(group_id).map(
            lambda value: refused(group_id, value) if isinstance(value, ApiError) else described(group_id, value)
        )

    return gather([answer(group_id) for group_id in group_ids])
