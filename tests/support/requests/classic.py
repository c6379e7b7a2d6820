"""Members of a classic group, made of bare requests: each has a connection of its own, so that one can wait while
others send requests.

Responses become plain data in which member ids, which are random, are replaced by the members' names.
"""

import re
from types import TracebackType
from typing import Any

from tests.support.requests.raw import Closed, RawConnection
from tests.support.requests.same import Plain, Side
from tests.support.waiting import until

from ottla.wire.frame import request_frame
from ottla.wire.message import Request, Response
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.groups.leave_group import LeaveGroupRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest

SYNC_NEWEST, HEARTBEAT_NEWEST, LEAVE_NEWEST = 5, 4, 5
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RETRIABLE = (14, 15, 16)  # coordinator loading, not available, not coordinator: Kafka is still creating its topic


class Crowd:
    """The members of a script on one side of a comparison. `version` is that of JoinGroup; other requests follow it."""

    def __init__(self, side: Side, group: str, version: int) -> None:
        self.side = side
        self.group = group
        self.version = version
        self._names: dict[str, str] = {}
        self._members: list[Actor] = []

    def __enter__(self) -> "Crowd":
        wait_for_coordinator(self.side, self.group)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for member in self._members:
            member.close()

    def actor(self, name: str, **joining: Any) -> "Actor":
        """A new member. `joining`: fields of its JoinGroup requests, other than the defaults."""
        actor = Actor(self, name, joining)
        self._members.append(actor)
        return actor

    def learn(self, member_id: str, name: str) -> None:
        if member_id:
            self._names.setdefault(member_id, name)

    def plain(self, message: Response, version: int) -> Plain:
        return self.named(self.side.plain(message, version))

    def named(self, data: Plain) -> Plain:
        """Replace ids by names, and sort lists in an order that does not depend on ids."""
        if isinstance(data, dict):
            return {key: self.named(value) for key, value in data.items()}
        if isinstance(data, list):
            return sorted((self.named(each) for each in data), key=repr)
        return self._names.get(data) or UUID.sub("#", data) if isinstance(data, str) else data

    def is_joining(self, client_id: str | None, instance_id: str | None) -> bool:
        """Whether the group is rebalancing and has a member of this client, or a new one of this instance."""
        request = DescribeGroupsRequest(groups=[self.group], include_authorized_operations=False)
        (group,) = self.side.answer(request, 5).groups  # type: ignore[attr-defined]
        return group.group_state == "PreparingRebalance" and any(
            each.client_id == client_id
            or (instance_id is not None and each.group_instance_id == instance_id and each.member_id not in self._names)
            for each in group.members
        )


def wait_for_coordinator(side: Side, group: str) -> None:
    """Wait for the coordinator: Kafka creates the offsets topic on first use, and loads it a moment later."""
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    until(lambda: side.call(asked, 6), lambda found: found["coordinators"][0]["error_code"] == 0)
    leaving = LeaveGroupRequest(group_id=group, members=[])
    until(lambda: side.call(leaving, 5), lambda found: found["error_code"] not in RETRIABLE)


class Actor:
    """A member. `send` and `answer` are separate for requests that wait; `call` does both."""

    def __init__(self, crowd: Crowd, name: str, joining: dict[str, Any]) -> None:
        self.name = name
        self.client_id: str | None = name
        self.member_id = ""
        self.generation = -1
        self.last: Response | None = None
        self._crowd = crowd
        self.joining = joining
        self._connection = RawConnection(crowd.side.bootstrap)
        self._sent: list[tuple[int, int, int]] = []
        self._next_id = 0

    # --- requests

    def joins(self, **fields: Any) -> Request:
        said = {"protocols": {"range": b"m"}, "protocol_type": "consumer", **self.joining, **fields}
        protocols = [
            JoinGroupRequest.Protocol(name=key, metadata=value) for key, value in said.pop("protocols").items()
        ]
        return JoinGroupRequest(
            **{
                "group_id": self._crowd.group,
                "session_timeout_ms": 30_000,
                "rebalance_timeout_ms": 30_000,
                "member_id": self.member_id,
                "protocols": protocols,
                **said,
            }
        )

    def syncs(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> Request:
        assigned = [
            SyncGroupRequest.Assignment(member_id=key, assignment=value) for key, value in (assignments or {}).items()
        ]
        said = {
            "group_id": self._crowd.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.joining.get("group_instance_id"),
            "protocol_type": self.joining.get("protocol_type", "consumer"),
            "protocol_name": "range",
        }
        return SyncGroupRequest(**{**said, "assignments": assigned, **fields})

    # --- connection

    def send(self, request: Request, version: int | None = None) -> None:
        version = self._version(request) if version is None else version
        self._next_id += 1
        self._sent.append((type(request).key, version, self._next_id))
        self._connection.send(request_frame(request, version, self._next_id, self.client_id))

    def answer(self) -> Plain:
        key, version, correlation_id = self._sent.pop(0)
        try:
            response = self._connection.decode(key, version, self._connection.receive(), correlation_id)
        except Closed:
            return "closed the connection"
        self.last = response
        if isinstance(response, JoinGroupResponse):
            self._crowd.learn(response.member_id, self.name)
            self.member_id = response.member_id or self.member_id
            self.generation = response.generation_id if response.error_code == 0 else self.generation
        return self._crowd.plain(response, version)

    def call(self, request: Request, version: int | None = None) -> Plain:
        self.send(request, version)
        return self.answer()

    # --- joining and leaving

    def start_join(self, **fields: Any) -> list[Plain]:
        """Send JoinGroup, after getting a member id if the version requires that; the answers so far."""
        told = []
        said = {**self.joining, **fields}
        if self._crowd.version >= 4 and not self.member_id and said.get("group_instance_id") is None:
            told.append(self.call(self.joins(**fields)))
        self.send(self.joins(**fields))
        instance_id = said.get("group_instance_id")
        until(lambda: self._connection.has_answer() or self._crowd.is_joining(self.client_id, instance_id))
        return told

    def join(self, **fields: Any) -> list[Plain]:
        """Join and wait until the generation is formed."""
        return [*self.start_join(**fields), self.answer()]

    def heartbeat(self, **fields: Any) -> Plain:
        said = {
            "group_id": self._crowd.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.joining.get("group_instance_id"),
        }
        return self.call(HeartbeatRequest(**{**said, **fields}))

    def leave(self, *members: tuple[str, str | None], reason: str | None = None) -> Plain:
        """Let this member leave, or those given by member id and instance id."""
        going = [
            LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=reason)
            for member_id, instance_id in members or ((self.member_id, self.joining.get("group_instance_id")),)
        ]
        return self.call(LeaveGroupRequest(group_id=self._crowd.group, member_id=going[0].member_id, members=going))

    def close(self) -> None:
        self._connection.close()

    def _version(self, request: Request) -> int:
        newest = {SyncGroupRequest: SYNC_NEWEST, HeartbeatRequest: HEARTBEAT_NEWEST, LeaveGroupRequest: LEAVE_NEWEST}
        # An instance id needs a version that has the field.
        least = 3 if self.joining.get("group_instance_id") is not None else 0
        return min(max(self._crowd.version, least), newest.get(type(request), self._crowd.version))
