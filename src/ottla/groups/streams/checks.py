"""Checks of a heartbeat's fields that do not depend on the state of the group."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.groups.modern.group import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from ottla.groups.streams.heartbeat import StreamsHeartbeat
from ottla.groups.streams.topology import ANY_PARTITIONS, Topology
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS, check_topic_name

_ROLES = ("ActiveTasks", "StandbyTasks", "WarmupTasks")
# The tasks of each role in a request; None: the request does not list the role.
Roles = Sequence[Sequence[object] | None]


def check_topology_names(topology: Topology) -> None:
    """Raise STREAMS_INVALID_TOPOLOGY for invalid topic names and internal topics of Kafka."""
    names: dict[str, None] = {}
    for each in topology.subtopologies:
        names.update(dict.fromkeys((*each.source_topics, *each.repartition_sinks)))
        names.update((topic.name, None) for topic in (*each.repartition_sources, *each.changelogs))
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        text = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    invalid = [name for name in names if not _is_valid(name)]
    if invalid:
        text = f"Topic names {','.join(invalid)} are not valid topic names."
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)


def check_heartbeat(heartbeat: StreamsHeartbeat, instance_id: str | None, roles: Roles) -> None:
    """Raise INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY for an invalid heartbeat."""
    if heartbeat.topology is not None and any(each.source_regexes for each in heartbeat.topology.subtopologies):
        raise _invalid("Regular expressions for source topics are not supported yet.")
    _refuse_empty(heartbeat.member_id, "MemberId")
    _refuse_empty(heartbeat.group_id, "GroupId")
    _refuse_empty(heartbeat.rack_id, "RackId")
    if heartbeat.epoch == JOIN_EPOCH:
        _check_join(heartbeat, roles)
    elif heartbeat.epoch == STATIC_LEAVE_EPOCH and instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif heartbeat.epoch < STATIC_LEAVE_EPOCH:
        raise _invalid(f"MemberEpoch is {heartbeat.epoch}, but must be greater than or equal to -2.")
    if any(tasks is not None for tasks in roles) and any(tasks is None for tasks in roles):
        raise _invalid("If one task-type is non-null, all must be non-null.")
    if heartbeat.epoch != JOIN_EPOCH and heartbeat.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def _check_join(heartbeat: StreamsHeartbeat, roles: Roles) -> None:
    if heartbeat.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in zip(_ROLES, roles, strict=True):
        if tasks is None or tasks:
            raise _invalid(f"{name} must be empty when (re-)joining.")
    if heartbeat.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    if heartbeat.topology.epoch < 0:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Topology epoch must be non-negative.")
    ids = [each.id for each in heartbeat.topology.subtopologies]
    if len(set(ids)) < len(ids):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Two subtopologies have the same id.")
    for topic in (topic for each in heartbeat.topology.subtopologies for topic in each.changelogs):
        if topic.partitions != ANY_PARTITIONS:
            raise ApiError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                f"{topic.partitions}.",
            )


def _is_valid(name: str) -> bool:
    try:
        check_topic_name(name)
    except ApiError:
        return False
    return True


def _refuse_empty(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
