"""Subscriptions: those of the cluster's metadata, as they are now; each change makes another version of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ottla.cluster.entities import Change, ConfigChanged
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.resources import Resource, ResourceType
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.telemetry.subscription import MetricsSubscription, subscription_of

log = logging.getLogger(__name__)


class Subscriptions:
    def __init__(self, metadata: MetadataHost) -> None:
        self.version = 0
        self._metadata = metadata
        self._by_name: dict[str, MetricsSubscription] | None = None  # None: to be read from the whole state
        self._ends = metadata.changes.add(self._changed), metadata.reloads.add(self._reloaded)

    def close(self) -> None:
        for end in self._ends:
            end()

    def all(self) -> dict[str, MetricsSubscription]:
        if self._by_name is None:
            self._by_name = {}
            kind = ResourceType.CLIENT_METRICS
            self._read(sorted(each.name for each in self._metadata.state.configs if each.type == kind))
        return self._by_name

    def _changed(self, changes: list[Change]) -> None:
        names: dict[str, None] = {}
        for change in changes:
            if isinstance(change, ConfigChanged) and change.resource.type == ResourceType.CLIENT_METRICS:
                names[change.resource.name] = None
        if names:
            self.version += 1
            if self._by_name is not None:
                self._read(names)

    def _reloaded(self) -> None:
        self.version += 1
        self._by_name = None

    def _read(self, names: Iterable[str]) -> None:
        """Take over the subscriptions of these names from the state."""
        assert self._by_name is not None, "they were read before"
        for name in names:
            self._by_name.pop(name, None)
            values = self._metadata.state.configs.get(Resource(ResourceType.CLIENT_METRICS, name))
            if values is None:
                continue
            if len(self._by_name) >= limits.TELEMETRY_SUBSCRIPTIONS_MAX:
                log.warning(
                    "client metrics subscription %s has no effect: there are more than %d; delete some",
                    name,
                    limits.TELEMETRY_SUBSCRIPTIONS_MAX,
                )
                continue
            try:
                self._by_name[name] = subscription_of(values)
            except ApiError as error:  # it was written by a Kafka, which can use other expressions
                log.warning("client metrics subscription %s has no effect; change it: %s", name, error.text)
