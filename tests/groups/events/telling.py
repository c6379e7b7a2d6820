"""Events of a stage's group as lines that tests compare."""

from tests.support.script import Stage

from ottla.groups.events.describe import DescribeGroupEvents, GroupHistory
from ottla.groups.events.event import UNKNOWN, GroupEvent
from ottla.groups.machine import GroupsMachine
from ottla.model.errors import ApiError


def told(stage: Stage[GroupsMachine], group_id: str) -> list[str]:
    """What the coordinator tells of the group now, the oldest event first; nothing while the reply waits."""
    found: list[GroupHistory | ApiError] = []
    stage._runner.submit(DescribeGroupEvents(group_id), stage.moment(), found.append)
    stage._commit()
    history = found[0]
    assert isinstance(history, GroupHistory), history
    return [line(each) for each in history.events]


def line(event: GroupEvent) -> str:
    who = event.member.client_id if event.member.client_id != "client" else event.member.member_id
    instance = f"@{event.member.instance_id}" if event.member.instance_id else ""
    setting = f"{event.setting.name}={event.setting.value}" if event.setting.name else ""
    duration = "" if event.duration_ms == UNKNOWN else f"in {event.duration_ms} ms"
    times = f"{event.times} times" if event.times > 1 else ""
    words = [event.kind.value, f"{who}{instance}", setting, event.detail, duration, times]
    return " ".join([*filter(None, words), f"({event.epoch}, {event.members})"])
