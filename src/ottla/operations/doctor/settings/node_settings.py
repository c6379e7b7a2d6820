"""The settings of one node as the doctor sees them: those of a server.properties, or those that a broker tells."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.model.config import Config
from ottla.model.errors import ApiError
from ottla.model.node_config import NodeConfig
from ottla.model.settings.controller import CONTROLLER_QUORUM_BOOTSTRAP_SERVERS, CONTROLLER_QUORUM_VOTERS
from ottla.operations.doctor.check import Checks, UnseenError
from ottla.security.certificate_facts import CertificateFacts
from ottla.security.host import is_loopback
from ottla.server.settings.configs import Configs
from ottla.server.settings.listeners import listened

SETTINGS = Checks["SettingsSeen"](
    "The settings of a node", "Made for a file (`--config`) and for each broker of a running cluster."
)
FILE = Checks["SettingsSeen"]("A configuration file", "Made for a server.properties only (`--config`).")


@dataclass(frozen=True, slots=True)
class SettingsSeen:
    """`hidden` are settings that are set, and whose values the broker does not tell. `certificates` are those of its
    listeners with the place where they were seen; `unreadable` are places where none could be read.
    """

    values: Mapping[str, str]
    hidden: Collection[str] = ()
    path: Path | None = None
    certificates: tuple[tuple[str, CertificateFacts], ...] = ()
    unreadable: tuple[str, ...] = ()
    cluster_size: int | None = None  # brokers of the running cluster

    @property
    def node(self) -> NodeConfig:
        """Raises UnseenError if a value is none of its setting."""
        try:
            return Configs(self.values).node
        except ApiError as error:
            raise UnseenError(f"the settings cannot be read: {error.text}") from None

    @property
    def broker(self) -> Config:
        return self.node.broker

    @property
    def has_others(self) -> bool:
        """Whether there are other nodes."""
        if self.cluster_size is not None:
            return self.cluster_size > 1
        settings = self.broker
        own = {f"{each.host}:{each.port}" for each in listened(settings)}
        others = [each for each in settings[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS] if each not in own]
        return len(settings[CONTROLLER_QUORUM_VOTERS]) > 1 or bool(others)

    @property
    def is_reachable(self) -> bool:
        """Whether other machines reach the node."""
        return not all(is_loopback(each.host) for each in listened(self.broker))
