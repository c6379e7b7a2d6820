"""`NodeConfig`: the complete configuration of a broker, in Kafka's order of precedence.

    topic or group value  >  dynamic broker value  >  dynamic default of all brokers  >  properties file  >  default

It is immutable: a change in the metadata log makes a new one with `with_dynamic`. `ottla.model.describe` shows the same
values to clients.
"""

from collections.abc import Mapping
from typing import Any

from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.client_metrics_settings import CLIENT_METRICS_SETTINGS
from ottla.model.config import Config
from ottla.model.group_settings import GROUP_SETTINGS
from ottla.model.setting import Dynamic, Setting, millis_per_unit
from ottla.model.settings.node import BROKER_ID, NODE_ID
from ottla.model.topic_settings import RETENTION_MS, TOPIC_SETTINGS

_NOTHING: Mapping[str, str] = {}


class NodeConfig:
    """The configuration of one broker."""

    __slots__ = (
        "_client_metrics",
        "broker",
        "dynamic_broker",
        "dynamic_default",
        "group_defaults",
        "static",
        "topic_defaults",
    )

    def __init__(
        self,
        static: Mapping[str, str],
        dynamic_default: Mapping[str, str] = _NOTHING,
        dynamic_broker: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Raise INVALID_CONFIG if the properties file has a bad value; bad dynamic values are left out."""
        self.static: Mapping[str, str] = _with_both_ids(static)
        self.dynamic_default = dynamic_default
        self.dynamic_broker = dynamic_broker
        layers = Config(self.static, BROKER_SETTINGS)
        for values in (dynamic_default, dynamic_broker):
            if values:
                layers = Config(_changeable(values), BROKER_SETTINGS, layers, lenient=True)
        self.broker = layers
        self.topic_defaults = _defaults_of(TOPIC_SETTINGS, self.broker)
        self.group_defaults = _defaults_of(GROUP_SETTINGS, self.broker)
        self._client_metrics = Config({}, CLIENT_METRICS_SETTINGS)

    def with_dynamic(self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]) -> "NodeConfig":
        """Return a copy of this configuration with other dynamic values."""
        return NodeConfig(self.static, dynamic_default, dynamic_broker)

    def topic(self, overrides: Mapping[str, str] | None = None) -> Config:
        """Return the settings of a topic whose own values are `overrides`."""
        if not overrides:
            return self.topic_defaults
        return Config(overrides, TOPIC_SETTINGS, self.topic_defaults, lenient=True)

    def group(self, overrides: Mapping[str, str] | None = None) -> Config:
        """Return the settings of a group whose own values are `overrides`."""
        if not overrides:
            return self.group_defaults
        return Config(overrides, GROUP_SETTINGS, self.group_defaults, lenient=True)

    def client_metrics(self, overrides: Mapping[str, str] | None = None) -> Config:
        """Return the settings of a client metrics subscription."""
        if not overrides:
            return self._client_metrics
        return Config(overrides, CLIENT_METRICS_SETTINGS, lenient=True)


def _with_both_ids(static: Mapping[str, str]) -> dict[str, str]:
    """Copy `node.id` to its older name `broker.id`, or the other way round, as Kafka does."""
    values = dict(static)
    if NODE_ID.name in values:
        values.setdefault(BROKER_ID.name, values[NODE_ID.name])
    elif BROKER_ID.name in values:
        values[NODE_ID.name] = values[BROKER_ID.name]
    return values


def _changeable(values: Mapping[str, str]) -> dict[str, str]:
    """Leave out settings that may not change while the broker runs, in case they are in the metadata log."""
    return {
        name: text
        for name, text in values.items()
        if name not in BROKER_SETTINGS or BROKER_SETTINGS[name].dynamic is not Dynamic.READ_ONLY
    }


def _defaults_of(settings: Mapping[str, Setting[Any]], broker: Config) -> Config:
    """Resolve the settings of a topic or group that has no values of its own."""
    values: dict[Setting[Any], Any] = {}
    for setting in settings.values():
        values[setting] = setting.default
        for followed in setting.follows:
            value = broker[followed]
            if value is not None:
                unit_ms = millis_per_unit(followed.name)
                values[setting] = value if unit_ms == 1 else value * unit_ms
                break
    if values.get(RETENTION_MS, 0) < 0:
        values[RETENTION_MS] = -1  # any negative number of hours means "for ever"
    return Config.of_values(values, broker)
