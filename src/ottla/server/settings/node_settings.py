"""NodeSettings: the settings that decide how a node starts, after the check that it may start with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.model.settings.authorizer import AUTHORIZER_CLASS_NAME
from ottla.model.settings.node import PROCESS_ROLES
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import controller_names, early_names
from ottla.server.settings.listeners import ListenerAddress, listened
from ottla.server.settings.start_refusals import check_start


class NodeSettings(NamedTuple):
    configs: Configs
    is_broker: bool
    is_controller: bool
    listeners: list[ListenerAddress]

    @classmethod
    def read(cls, values: Mapping[str, str]) -> NodeSettings:
        """Raise INVALID_CONFIG if a node must not start with these server properties."""
        configs = Configs(values)
        roles, listeners = configs.broker[PROCESS_ROLES], listened(configs.broker)
        check_start(configs, listeners)
        return cls(configs, "broker" in roles, "controller" in roles, listeners)

    def is_of_controllers(self, listener: ListenerAddress) -> bool:
        """Return whether a listener is for other controllers and brokers, not for clients."""
        return listener.name in controller_names(self.configs.broker)

    def waits_for_acls(self, listener: ListenerAddress) -> bool:
        """Return whether a listener must not open before the ACLs are loaded. All for clients open later anyway."""
        settings = self.configs.broker
        return bool(settings[AUTHORIZER_CLASS_NAME]) and listener.name not in early_names(settings)
