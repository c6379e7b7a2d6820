"""Configs: the node's configuration as it is now — the properties file under what the cluster's metadata says.

Readers ask each time (a look-up is a dictionary access); a change in the metadata only drops what was derived.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.cluster.state import ClusterState
from ottla.log.config import LogConfig
from ottla.model.config import Config
from ottla.model.node_config import NodeConfig
from ottla.model.resources import ResourceType
from ottla.model.settings.log import LOG_DIR, LOG_DIRS
from ottla.model.settings.node import NODE_ID

# What a node is that was told nothing: alone, with both roles. Kafka wants these spelled out; we do not.
SINGLE_NODE = {"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER"}


class Configs:
    def __init__(self, values: Mapping[str, str]) -> None:
        self.node = NodeConfig({**({} if "broker.id" in values else SINGLE_NODE), **values})
        self._state: ClusterState | None = None
        self._default_log_config: LogConfig | None = None
        self._log_configs: dict[str, LogConfig] = {}
        self._groups: dict[str, Config] = {}  # those that set something themselves

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
        """From now on dynamic values come from `state`."""
        self._state = state
        self.forget()

    def forget(self) -> None:
        """The cluster's configurations changed: derive everything anew when it is next asked for."""
        if self._state is not None:
            everybody = self._state.config(ResourceType.BROKER, "")
            own = self._state.config(ResourceType.BROKER, str(self.node_id))
            if everybody != self.node.dynamic_default or own != self.node.dynamic_broker:
                self.node = self.node.with_dynamic(dict(everybody), dict(own))
        self._default_log_config = None
        self._log_configs.clear()
        self._groups.clear()

    def overrides(self, topic: str) -> Mapping[str, str]:
        """What a topic sets itself."""
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
        """What the log of a topic needs to know; topics without settings of their own share one object."""
        overrides = self.overrides(topic)
        if not overrides:
            if self._default_log_config is None:
                self._default_log_config = LogConfig.of(self.node.topic())
            return self._default_log_config
        found = self._log_configs.get(topic)
        if found is None:
            found = self._log_configs[topic] = LogConfig.of(self.node.topic(overrides))
        return found
