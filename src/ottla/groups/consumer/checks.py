"""Checks of a heartbeat's fields that do not depend on the state of the group."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.groups.consumer.heartbeat import ConsumerHeartbeat
from ottla.groups.modern.group import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from ottla.model.errors import ApiError, ErrorCode

# From this version of ConsumerGroupHeartbeat on, members choose their ids (KIP-1082).
_MEMBERS_CHOOSE_IDS = 1


def check_heartbeat(heartbeat: ConsumerHeartbeat, version: int, assignors: Sequence[str]) -> None:
    """Raises INVALID_REQUEST or UNSUPPORTED_ASSIGNOR."""
    epoch = heartbeat.epoch
    if version >= _MEMBERS_CHOOSE_IDS or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _refuse_empty(heartbeat.member_id, "MemberId")
    _refuse_empty(heartbeat.group_id, "GroupId")
    _refuse_empty(heartbeat.instance_id, "InstanceId")
    _refuse_empty(heartbeat.rack_id, "RackId")
    if epoch == JOIN_EPOCH:
        _check_join(heartbeat)
    elif epoch == STATIC_LEAVE_EPOCH and heartbeat.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if heartbeat.server_assignor is not None and heartbeat.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {heartbeat.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _check_join(heartbeat: ConsumerHeartbeat) -> None:
    if heartbeat.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if heartbeat.owned is None or heartbeat.owned:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if heartbeat.subscribed_topics is None and heartbeat.subscribed_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _refuse_empty(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
