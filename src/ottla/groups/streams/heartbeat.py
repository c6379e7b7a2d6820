"""StreamsGroupHeartbeat: members join, send the topology, report the tasks they own, and learn their target.

One heartbeat does everything that is due for the group: it writes the member's description, compares the topology with
the existing topics, bumps the group's epoch if anything changed, assigns the tasks for a new epoch, and moves this
member a step towards its target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.modern.group import JOIN_EPOCH
from ottla.groups.streams.configure import Configured, StatusDetail, StreamsStatus
from ottla.groups.streams.draft import StreamsDraft
from ottla.groups.streams.endpoints import EndpointShare, endpoint_shares
from ottla.groups.streams.entries import member_entry, topology_entry
from ottla.groups.streams.group import StreamsGroup, streams_group
from ottla.groups.streams.internal_topics import ask_for_missing
from ottla.groups.streams.leave import TIMEOUTS, keep_session
from ottla.groups.streams.member import StreamsMember, UserEndpoint
from ottla.groups.streams.notes import EndpointsChanged, ShutdownAsked, Waiting
from ottla.groups.streams.tasks import Tasks, TaskSet, without_epochs
from ottla.groups.streams.topology import Topology
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.group_settings import STREAMS_HEARTBEAT_INTERVAL_MS, STREAMS_INITIAL_REBALANCE_DELAY_MS
from ottla.model.settings.groups import GROUP_STREAMS_MAX_SIZE


class StreamsHeartbeatReply(NamedTuple):
    """The answer to a heartbeat; without tasks or endpoints the member keeps those it has."""

    member_id: str
    epoch: int
    interval_ms: int
    statuses: tuple[StatusDetail, ...]
    tasks: TaskSet | None
    endpoint_epoch: int
    endpoints: tuple[EndpointShare, ...] | None


@dataclass(frozen=True, slots=True)
class StreamsHeartbeat:
    """A heartbeat whose fields were checked (`checks.py`). None, or -1 for the timeout, means unchanged."""

    group_id: str
    member_id: str
    epoch: int
    endpoint_epoch: int = 0
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    owned: TaskSet | None = None
    process_id: str | None = None
    endpoint: UserEndpoint | None = None
    client_tags: tuple[tuple[str, str], ...] | None = None
    wants_shutdown: bool = False
    client_id: str = ""
    client_host: str = ""
    may_create: Callable[[str], bool] | None = None  # which topics the client may create; None: all

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, StreamsHeartbeatReply]:
        draft = self._draft(view, now_ms)
        old = self._member(draft.group)
        new = self._updated(old)
        if new != old:
            draft.records.append(member_entry(self.group_id, new))
        topology = self._topology(draft, new)
        configured, digest = draft.configure(topology)
        _check_tasks(configured, self.owned)
        epoch = draft.raise_epoch(topology, configured, digest, changed=new != old)
        members = {**draft.group.members, new.member_id: new}
        target = draft.assign(epoch, new.member_id, members, configured, wait=_waits(draft))
        after = draft.reconcile(new, target, self.owned)
        TIMEOUTS.watch_revocation(draft, new, after)
        keep_session(draft, self.member_id)
        return draft.result(self._heard(draft, old, after, configured))

    def _draft(self, view: GroupsView, now_ms: int) -> StreamsDraft:
        """Return a draft of the existing group, or of a new one that may replace an empty classic one;
        GROUP_ID_NOT_FOUND.
        """
        found = view.state.groups.get(self.group_id)
        if self.epoch != JOIN_EPOCH:
            return StreamsDraft(view, streams_group(view, self.group_id, "Streams group {} not found."), now_ms)
        if found is None:
            return StreamsDraft(view, StreamsGroup(self.group_id), now_ms)
        if isinstance(found, ClassicGroup) and found.is_empty:
            draft = StreamsDraft(view, StreamsGroup(self.group_id), now_ms)
            draft.records += found.tombstones()
            return draft
        group = streams_group(view, self.group_id)
        group.check_size(view.setting(GROUP_STREAMS_MAX_SIZE))
        return StreamsDraft(view, group, now_ms)

    def _member(self, group: StreamsGroup) -> StreamsMember:
        if self.epoch == JOIN_EPOCH and self.member_id not in group.members:
            return StreamsMember(self.member_id)
        member = group.member(self.member_id)
        _check_epoch(member, self.epoch, self.owned)
        return member

    def _updated(self, member: StreamsMember) -> StreamsMember:
        timeout_ms = self.rebalance_timeout_ms
        return replace(
            member,
            rack_id=member.rack_id if self.rack_id is None else self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            topology_epoch=member.topology_epoch if self.topology is None else self.topology.epoch,
            process_id=member.process_id if self.process_id is None else self.process_id,
            endpoint=member.endpoint if self.endpoint is None else self.endpoint,
            client_tags=member.client_tags if self.client_tags is None else tuple(sorted(self.client_tags)),
        )

    def _topology(self, draft: StreamsDraft, member: StreamsMember) -> Topology:
        """Return the group's topology; the first member sets it, and others must send the same."""
        known = draft.group.topology
        if known is None:
            if self.topology is None:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {self.group_id} has no topology.")
            draft.records.append(topology_entry(self.group_id, self.topology))
            return self.topology
        if self.topology is not None and self.topology.epoch >= known.epoch and not self.topology.is_same(known):
            raise ApiError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        if member.topology_epoch < known.epoch:
            text = (
                f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch "
                f"{known.epoch}."
            )
            draft.statuses.append(StatusDetail(StreamsStatus.STALE_TOPOLOGY, text))
        return known

    def _heard(
        self, draft: StreamsDraft, old: StreamsMember, new: StreamsMember, configured: Configured
    ) -> StreamsHeartbeatReply:
        group = draft.group
        tells = self.epoch == JOIN_EPOCH or new.assigned != old.assigned
        endpoint_epoch, endpoints = self._endpoints(draft, new, configured, changed=tells)
        ask_for_missing(draft, configured, self.may_create)
        shutdown_by = group.shutdown_by
        if self.wants_shutdown:
            draft.notes.append(ShutdownAsked(self.group_id, self.member_id))
            shutdown_by = shutdown_by or self.member_id
        if shutdown_by is not None:
            text = f"Streams group member {shutdown_by} encountered a fatal error and requested a shutdown for the"
            draft.statuses.append(StatusDetail(StreamsStatus.SHUTDOWN_APPLICATION, f"{text} entire application."))
        return StreamsHeartbeatReply(
            new.member_id,
            new.epoch,
            draft.setting(STREAMS_HEARTBEAT_INTERVAL_MS),
            tuple(draft.statuses),
            without_epochs(new.assigned) if tells else None,
            endpoint_epoch,
            endpoints,
        )

    def _endpoints(
        self, draft: StreamsDraft, member: StreamsMember, configured: Configured, *, changed: bool
    ) -> tuple[int, tuple[EndpointShare, ...] | None]:
        """Return the epoch of the endpoints, and the endpoints unless the member has seen them."""
        group = draft.group
        epoch = group.endpoint_epoch
        is_seen = epoch == self.endpoint_epoch
        if changed and member.endpoint is not None:
            is_seen = epoch + 1 == self.endpoint_epoch
            if draft.view.state.groups.get(self.group_id) is group:  # Kafka does not count for a new group
                epoch += 1
                draft.notes.append(EndpointsChanged(self.group_id))
        if is_seen:
            return epoch, None
        others = [each for each in group.members.values() if each.member_id != member.member_id]
        return epoch, endpoint_shares([*others, member], configured, draft.view.topics)


@dataclass(frozen=True, slots=True)
class FirstAssignment:
    """The initial rebalance delay has passed: assign the tasks."""

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, StreamsGroup):
            return Result()
        draft = StreamsDraft(view, group, now_ms)
        draft.notes.append(Waiting(self.group_id, False))
        if group.members and group.configured is not None:
            draft.assign(group.epoch, "", group.members, group.configured, wait=False)
        return draft.result(None)


def _waits(draft: StreamsDraft) -> bool:
    """Whether the first assignment waits for more members; the first member of an empty group starts this delay."""
    group = draft.group
    delay_ms = draft.setting(STREAMS_INITIAL_REBALANCE_DELAY_MS)
    if group.is_waiting_for_members:
        return True
    if group.members or delay_ms <= 0:
        return False
    draft.after(("streams members", group.group_id), delay_ms, FirstAssignment(group.group_id))
    draft.notes.append(Waiting(group.group_id, True))
    return True


def _check_epoch(member: StreamsMember, epoch: int, owned: TaskSet | None) -> None:
    """Check the member's epoch. A member that missed the last answer sends the epoch before it, which is accepted if it
    owns only tasks that are still assigned to it.
    """
    is_repeated = epoch == member.previous_epoch and epoch < member.epoch
    if epoch in (JOIN_EPOCH, member.epoch) or (is_repeated and owned is not None and owned.is_within(member.assigned)):
        return
    than = "greater" if epoch > member.epoch else "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {than} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _check_tasks(configured: Configured, owned: TaskSet | None) -> None:
    if owned is None or not configured.is_ready:
        return
    for tasks in owned:
        _check_role(configured, tasks)


def _check_role(configured: Configured, tasks: Tasks) -> None:
    for name, partitions in tasks.items():
        subtopology = configured.subtopologies.get(name)
        if subtopology is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Subtopology {name} does not exist in the topology.")
        for partition in sorted(partitions):
            if not 0 <= partition < subtopology.tasks:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {partition} for subtopology {name} is invalid. "
                    f"Number of tasks for this subtopology: {subtopology.tasks}",
                )
