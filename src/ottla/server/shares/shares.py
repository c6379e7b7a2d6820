"""Shares: share groups (KIP-932) on this node."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.coordination.runtime import CoordinatorRuntime
from ottla.server.dead_letters.dead_letters import DeadLetters
from ottla.server.fetch.engine import FetchEngine
from ottla.server.fetch.share_sessions import Named, ShareSession
from ottla.server.loop.later import Later
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.settings.configs import Configs
from ottla.server.shares.acknowledgements import AcknowledgedTopic, acknowledge
from ottla.server.shares.coordinators import share_coordinators
from ottla.server.shares.high_watermarks import HighWatermarks
from ottla.server.shares.share_partitions import SharePartitions
from ottla.server.shares.share_reads import read_shares
from ottla.server.shares.share_states import ShareStates
from ottla.server.shares.taken_records import ShareFound
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest

_FEATURE = "share.version"
_FIRST_LEVEL = 1


class Shares:
    """The parts of share groups on this node:

    - `coordinators`: the machines on `__share_group_state`, which store the state of share partitions;
    - `states`: access to that state, at the coordinator of this or another node;
    - `partitions`: the share partitions in use on this node; `sessions`: the members that fetch from them.
    """

    def __init__(
        self,
        coordinating: CoordinatorRuntime,
        configs: Configs,
        requests: PeerRequests,
        dead_letters: DeadLetters,
    ) -> None:
        storage = coordinating.storage
        self._now_ms = coordinating.runtime.now_ms
        self._metadata = coordinating.metadata
        self._engine = FetchEngine(storage.partitions, storage.waiters, storage.cold)
        self.coordinators = share_coordinators(coordinating, configs)
        self.states = ShareStates(coordinating, self.coordinators, requests)
        self.partitions = SharePartitions(
            coordinating.runtime, configs, storage, coordinating.metadata, self.states, dead_letters
        )
        self.sessions = self.partitions.sessions
        self.high_watermarks = HighWatermarks(storage.partitions, coordinating.metadata, requests).of

    def require_enabled(self) -> None:
        """Raise UNSUPPORTED_VERSION if the cluster's feature `share.version` is off."""
        if self._metadata.state.features.get(_FEATURE, 0) < _FIRST_LEVEL:
            code = ErrorCode.UNSUPPORTED_VERSION
            raise ApiError(code, code.message)

    def check_member(self, group_id: str | None, member_id: str | None) -> tuple[str, str]:
        """Refuse a request without a valid group id and member id."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
        if not member_id or len(member_id) > limits.SHARE_MEMBER_ID_CHARS_MAX:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
        return group_id, member_id

    def lock_ms(self, group_id: str) -> int:
        """Return for how long a member of the group acquires records."""
        return self.partitions.rules.of(group_id).records.lock_ms

    def acknowledge(
        self, group_id: str, member_id: str, topics: Iterable[AcknowledgedTopic], *, renew: bool
    ) -> dict[Named, Later[ApiError | None]]:
        """Return the outcome of a request's acknowledgements per partition; partitions without any are left out."""
        return acknowledge(self.partitions, group_id, member_id, topics, renew=renew)

    def read(
        self, session: ShareSession, request: ShareFetchRequest, readable: Callable[[bytes], bool] | None = None
    ) -> Later[ShareFound]:
        """Acquire records for the session's member, perhaps after a wait; `readable` tells whether it may read the
        topic with an id, None means that it may read all.
        """
        return read_shares(self._engine, self.partitions, session, request, self._now_ms, readable)
