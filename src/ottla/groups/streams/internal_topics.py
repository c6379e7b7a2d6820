"""Missing internal topics of a topology: requested with every heartbeat until they exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.streams.configure import Configured, StatusDetail
from ottla.groups.streams.draft import StreamsDraft
from ottla.groups.streams.notes import CreationFailed
from ottla.groups.streams.topology import InternalTopic
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.group_settings import STREAMS_HEARTBEAT_INTERVAL_MS

_ERRORS_SHOWN_MAX = 3
_PAUSE_BEATS = 2  # how many heartbeat intervals a failure is remembered for


class CreateInternalTopics(NamedTuple):
    """An effect: these topics shall exist. Failures come back as `InternalTopicsFailed`."""

    group_id: str
    topics: tuple[InternalTopic, ...]


@dataclass(frozen=True, slots=True)
class InternalTopicsFailed:
    """Submitted by the node: the topics that could not be created, and why."""

    group_id: str
    errors: tuple[tuple[str, str], ...]

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        pause_ms = _PAUSE_BEATS * view.group(self.group_id)[STREAMS_HEARTBEAT_INTERVAL_MS]
        return Result(notes=[CreationFailed(self.group_id, self.errors, now_ms + pause_ms)])


def ask_for_missing(
    draft: StreamsDraft, configured: Configured, may_create: Callable[[str], bool] | None = None
) -> None:
    """Request the missing topics, and add the problem to the member's answer. If the member may not create one of them,
    none is requested, as with Kafka.
    """
    if configured.problem is None:
        return
    group = draft.group
    failed = {name: text for name, (text, until_ms) in group.creation_errors.items() if draft.now_ms < until_ms}
    wanted = tuple(topic for topic in configured.missing if topic.name not in failed)
    forbidden = [topic.name for topic in wanted if may_create is not None and not may_create(topic.name)]
    if wanted and not forbidden:
        draft.effects.append(CreateInternalTopics(group.group_id, wanted))
    shown = [f"{topic.name} ({failed[topic.name]})" for topic in configured.missing if topic.name in failed]
    problem = _with_errors(configured.problem, shown)
    if forbidden:
        problem = problem._replace(detail=f"{problem.detail}; Unauthorized to CREATE on topics {', '.join(forbidden)}.")
    draft.statuses.append(problem)


def _with_errors(problem: StatusDetail, errors: list[str]) -> StatusDetail:
    if not errors:
        return problem
    text = ", ".join(errors[:_ERRORS_SHOWN_MAX])
    if len(errors) > _ERRORS_SHOWN_MAX:
        text += f" and {len(errors) - _ERRORS_SHOWN_MAX} more"
    return problem._replace(detail=f"{problem.detail}; Creation failed: {text}.")
