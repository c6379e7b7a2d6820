"""What happened to a group lately, as its coordinator remembers it. Only Ottla's coordinators do (ADR 0048)."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.coordinator import Coordinator
from ottla.client.errors import UnsupportedApi, check
from ottla.wire.messages.groups.ottla_describe_group_events import (
    OttlaDescribeGroupEventsRequest,
    OttlaDescribeGroupEventsResponse,
)

_UNKNOWN = -1
_NEEDS_OTTLA = "the events of a group are remembered by Ottla only: this broker does not tell them"


class PastEvent(NamedTuple):
    """One event of a group: `kind` is one of `ottla.groups.events.event.Happening`. Fields without a meaning are None
    or empty.
    """

    at_ms: int
    kind: str
    epoch: int | None  # the group's generation or epoch after it
    members: int | None  # the number of members after it
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    setting: str  # the setting that it follows from
    setting_value: int | None
    detail: str
    duration_ms: int | None  # of a rebalance that ended
    times: int  # how often it happened in a row


class GroupPast(NamedTuple):
    """The events of a group, the oldest first; the coordinator `node_id` knows nothing from before `since_ms`. Times
    are the coordinator's, whose present time is `now_ms`.
    """

    group_id: str
    node_id: int
    now_ms: int
    since_ms: int
    events: tuple[PastEvent, ...]


async def group_past(coordinator: Coordinator, group_id: str) -> GroupPast:
    """Ask the coordinator. Raises UnsupportedApi if it is not Ottla's."""
    request = OttlaDescribeGroupEventsRequest(group_id=group_id)
    try:
        answer = await coordinator.call(request, error_of=lambda each: each.error_code)
    except UnsupportedApi as error:
        raise UnsupportedApi(_NEEDS_OTTLA) from error
    check(answer.error_code, answer.error_message)
    return GroupPast(group_id, answer.node_id, answer.now_ms, answer.since_ms, tuple(_events(answer.events)))


def _events(events: Iterable[OttlaDescribeGroupEventsResponse.Event]) -> Iterable[PastEvent]:
    for each in events:
        yield PastEvent(
            at_ms=each.at_ms,
            kind=each.kind,
            epoch=_known(each.epoch),
            members=_known(each.members),
            member_id=each.member_id,
            instance_id=each.instance_id,
            client_id=each.client_id,
            host=each.client_host,
            setting=each.setting,
            setting_value=_known(each.setting_value),
            detail=each.detail,
            duration_ms=_known(each.duration_ms),
            times=each.times,
        )


def _known(number: int) -> int | None:
    return None if number == _UNKNOWN else number
