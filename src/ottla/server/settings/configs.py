"""Configs: the node's current configuration: the properties file, overridden by the dynamic values of the metadata.

Readers look a value up each time (a dictionary access); a change in the metadata only drops derived values.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.cluster.state import ClusterState
from ottla.log.config import LogConfig
from ottla.model.config import Config
from ottla.model.node_config import NodeConfig
from ottla.model.resources import ResourceType
from ottla.model.settings.controller import CONTROLLER_LISTENER_NAMES
from ottla.model.settings.log import LOG_DIR, LOG_DIRS
from ottla.model.settings.node import BROKER_ID, NODE_ID, PROCESS_ROLES

# The roles of a node without configuration: alone, as broker and controller. Kafka requires these settings.
SINGLE_NODE = {
    PROCESS_ROLES.name: "broker,controller",
    NODE_ID.name: "1",
    CONTROLLER_LISTENER_NAMES.name: "CONTROLLER",
}


class Configs:
    def __init__(self, values: Mapping[str, str]) -> None:
        self.node = NodeConfig({**({} if BROKER_ID.name in values else SINGLE_NODE), **values})
        self._state: ClusterState | None = None
        self._default_log_config: LogConfig | None = None
        self._log_configs: dict[str, LogConfig] = {}
        self._groups: dict[str, Config] = {}  # groups with overrides of their own

    @property
    def broker(self) -> Config:
        return self.node.broker

    @property
    def node_id(self) -> int:
        return self.broker[NODE_ID]

    def log_dirs(self) -> list[str]:
        listed = self.broker[LOG_DIRS]
        return list(listed or self.broker[LOG_DIR])

    def follow(self, state: ClusterState) -> None:
        """Take dynamic values from `state` from now on."""
        self._state = state
        self.forget()

    def forget(self) -> None:
        """Drop all derived values, because the dynamic configurations changed; they are derived anew when next asked
        for.
        """
        if self._state is not None:
            everybody = self._state.config(ResourceType.BROKER, "")
            own = self._state.config(ResourceType.BROKER, str(self.node_id))
            if everybody != self.node.dynamic_default or own != self.node.dynamic_broker:
                self.node = self.node.with_dynamic(dict(everybody), dict(own))
        self._default_log_config = None
        self._log_configs.clear()
        self._groups.clear()

    def overrides(self, topic: str) -> Mapping[str, str]:
        """Return the settings of the topic itself."""
        return self._state.config(ResourceType.TOPIC, topic) if self._state is not None else {}

    def topic(self, topic: str) -> Config:
        return self.node.topic(self.overrides(topic))

    def group(self, group_id: str) -> Config:
        found = self._groups.get(group_id)
        if found is None:
            overrides = self._state.config(ResourceType.GROUP, group_id) if self._state is not None else {}
            found = self.node.group(overrides)
            if overrides:
                self._groups[group_id] = found
        return found

    def log_config(self, topic: str) -> LogConfig:
        """Return the settings that the log of a topic uses; topics without settings of their own share one object."""
        overrides = self.overrides(topic)
        if not overrides:
            if self._default_log_config is None:
                self._default_log_config = LogConfig.of(self.node.topic())
            return self._default_log_config
        found = self._log_configs.get(topic)
        if found is None:
            found = self._log_configs[topic] = LogConfig.of(self.node.topic(overrides))
        return found
