"""Shares: share groups (KIP-932) on this node."""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.coordination.runtime import CoordinatorRuntime
from ottla.server.dead_letters.dead_letters import DeadLetters
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.settings.configs import Configs
from ottla.server.shares.coordinators import share_coordinators
from ottla.server.shares.share_partitions import SharePartitions
from ottla.server.shares.share_states import ShareStates

_FEATURE = "share.version"
_FIRST_LEVEL = 1


class Shares:
    """The parts of share groups on this node:

    - `coordinators`: the machines on `__share_group_state`, which store the state of share partitions;
    - `states`: access to that state, at the coordinator of this or another node;
    - `partitions`: the share partitions in use on this node, and the sessions of their members.
    """

    def __init__(
        self,
        coordinating: CoordinatorRuntime,
        configs: Configs,
        requests: PeerRequests,
        dead_letters: DeadLetters,
    ) -> None:
        self._metadata = coordinating.metadata
        self.coordinators = share_coordinators(coordinating, configs)
        self.states = ShareStates(coordinating, self.coordinators, requests)
        self.partitions = SharePartitions(
            coordinating.runtime, configs, coordinating.storage, coordinating.metadata, self.states, dead_letters
        )

    def require_enabled(self) -> None:
        """Raise UNSUPPORTED_VERSION if the cluster's feature `share.version` is off."""
        if self._metadata.state.features.get(_FEATURE, 0) < _FIRST_LEVEL:
            code = ErrorCode.UNSUPPORTED_VERSION
            raise ApiError(code, code.message)
