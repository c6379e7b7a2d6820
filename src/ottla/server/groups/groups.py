"""Groups: the group coordinators of a node (classic, consumer, share and streams groups, and their offsets)."""

from __future__ import annotations

from collections.abc import Callable

from ottla.cluster.commands.create_topics import TopicOutcome, TopicToCreate
from ottla.groups.events.log import EventBudget
from ottla.groups.machine import GroupsMachine
from ottla.groups.share.state_partitions import InitializeShares
from ottla.groups.state import GroupsState
from ottla.groups.streams.internal_topics import CreateInternalTopics
from ottla.groups.view import GroupsView
from ottla.machine.keyed import types_of
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.model.settings.groups import GROUP_COORDINATOR_REBALANCE_PROTOCOLS, OFFSETS_COMMIT_TIMEOUT_MS
from ottla.server.coordination.hosts import Coordinators
from ottla.server.coordination.runtime import CoordinatorRuntime
from ottla.server.groups.cluster_topics import ClusterTopics
from ottla.server.groups.share_group_states import ShareGroupStates
from ottla.server.groups.streams_internal_topics import StreamsInternalTopics
from ottla.server.loop.later import Later
from ottla.server.settings.configs import Configs
from ottla.server.shares.shares import Shares
from ottla.wire.journal import consumer_group, consumer_offsets, share_group, streams_group

# The features that enable the rebalance protocols in a cluster.
_CONSUMER_FEATURE = "group.version"
_STREAMS_FEATURE = "streams.version"
_FIRST_LEVEL = 1


class Groups:
    """`create_topics` has the controller create the internal topics of streams groups.

    - `coordinators`: the machines on `__consumer_offsets`;
    - `share_states`: requests of share groups to the share coordinators.
    """

    def __init__(
        self,
        coordinating: CoordinatorRuntime,
        configs: Configs,
        shares: Shares,
        create_topics: Callable[[tuple[TopicToCreate, ...]], Later[list[TopicOutcome]]],
    ) -> None:
        self._configs = configs
        self._metadata = coordinating.metadata
        self._rng = coordinating.runtime.rng
        self._topics = ClusterTopics(coordinating.metadata)
        self.events = EventBudget()
        self.coordinators: Coordinators[GroupsView] = coordinating.coordinators(
            CONSUMER_OFFSETS_TOPIC,
            types_of(consumer_offsets, consumer_group, share_group, streams_group),
            self._make_machine,
            lambda: configs.broker[OFFSETS_COMMIT_TIMEOUT_MS],
        )
        self.submit = self.coordinators.submit
        self.ask = self.coordinators.ask
        self.share_states = ShareGroupStates(coordinating.runtime, self.coordinators, shares)
        internal_topics = StreamsInternalTopics(coordinating.runtime, self.coordinators, create_topics)
        self.coordinators.on_effect(InitializeShares, self.share_states.initialize_soon)
        self.coordinators.on_effect(CreateInternalTopics, internal_topics.create_soon)

    def _make_machine(self, _: int) -> GroupsMachine:
        configs = self._configs
        state = GroupsState(self.events)
        return GroupsMachine(GroupsView(state, self._topics, lambda: configs.broker, configs.group, self._rng))

    def require_consumer_protocol(self) -> None:
        """Raise UNSUPPORTED_VERSION if consumer groups (KIP-848) are off, by a setting or by the cluster's features."""
        self._require("consumer", _CONSUMER_FEATURE)

    def require_streams_protocol(self) -> None:
        """Raise UNSUPPORTED_VERSION if streams groups are off, by a setting or by the cluster's features."""
        self._require("streams", _STREAMS_FEATURE)

    def _require(self, protocol: str, feature: str) -> None:
        enabled = protocol in self._configs.broker[GROUP_COORDINATOR_REBALANCE_PROTOCOLS]
        if not enabled or self._metadata.state.features.get(feature, 0) < _FIRST_LEVEL:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
