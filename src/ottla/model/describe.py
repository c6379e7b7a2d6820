"""The entries of a DescribeConfigs answer: every setting with its value and the source of the value; secrets are
hidden.

The order of the synonyms, which of them are left out, and the odd cases (a retention in hours shows no source, an
unknown broker key is shown as a secret) are Kafka 4.3.1's, observed on a real broker.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.client_metrics_settings import CLIENT_METRICS_SETTINGS
from ottla.model.config import declared
from ottla.model.group_settings import GROUP_SETTINGS
from ottla.model.node_config import NodeConfig
from ottla.model.resources import ConfigSource
from ottla.model.setting import Dynamic, Setting, SettingKind
from ottla.model.topic_settings import TOPIC_SETTINGS


class SynonymValue(NamedTuple):
    """A value given under one of a setting's names; a list of these has the effective one first."""

    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    """One entry of a DescribeConfigs answer."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    kind: SettingKind
    synonyms: tuple[SynonymValue, ...]
    doc: str | None


Wanted = Collection[str] | None  # None: every setting


def describe_topic(node: NodeConfig, overrides: Mapping[str, str], wanted: Wanted = None) -> Iterator[DescribedConfig]:
    """Describe the settings of a topic."""
    config = node.topic(overrides)
    for setting in _asked(TOPIC_SETTINGS, overrides, wanted):
        synonyms = _broker_values(node, setting.follows[0].name) if setting.follows else ()
        yield _entry(setting, config[setting], overrides, ConfigSource.TOPIC, synonyms)


def describe_group(node: NodeConfig, overrides: Mapping[str, str], wanted: Wanted = None) -> Iterator[DescribedConfig]:
    """Describe the settings of a group."""
    config = node.group(overrides)
    for setting in _asked(GROUP_SETTINGS, overrides, wanted):
        if setting.follows:
            synonyms = _broker_values(node, setting.follows[0].name)
        else:
            synonyms = (SynonymValue(setting.name, setting.render(setting.default), ConfigSource.DEFAULT),)
        yield _entry(setting, config[setting], overrides, ConfigSource.GROUP, synonyms)


def describe_client_metrics(
    node: NodeConfig, overrides: Mapping[str, str], wanted: Wanted = None
) -> Iterator[DescribedConfig]:
    """Describe the settings of a client metrics subscription."""
    config = node.client_metrics(overrides)
    for setting in _asked(CLIENT_METRICS_SETTINGS, overrides, wanted):
        yield _entry(setting, config[setting], overrides, ConfigSource.CLIENT_METRICS, ())


def describe_broker(node: NodeConfig, wanted: Wanted = None) -> Iterator[DescribedConfig]:
    """Describe this broker: every public setting, and every other setting that has a value."""
    texts = {**node.static, **node.dynamic_default, **node.dynamic_broker}
    public = [each.name for each in BROKER_SETTINGS.values() if not (each.internal or each.of_plugin)]
    for name in dict.fromkeys([*public, *texts]):
        if wanted is None or name in wanted:
            known = BROKER_SETTINGS.get(name)
            if known is None:
                value: str | None = texts[name]
            else:
                value = known.render(node.broker[known]) if known in node.broker else None
            yield _broker_entry(name, value, _broker_values(node, name))


def describe_default_broker(node: NodeConfig, wanted: Wanted = None) -> Iterator[DescribedConfig]:
    """Describe the dynamic defaults of all brokers (the broker resource with an empty name)."""
    for name, text in node.dynamic_default.items():
        if wanted is None or name in wanted:
            synonyms = (s for s in _broker_values(node, name) if s.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
            yield _broker_entry(name, text, tuple(synonyms))


def _asked(
    settings: Mapping[str, Setting[Any]], overrides: Mapping[str, str], wanted: Wanted
) -> Iterator[Setting[Any]]:
    for setting in settings.values():
        if (wanted is None or setting.name in wanted) and (not setting.internal or setting.name in overrides):
            yield setting


def _entry(
    setting: Setting[Any],
    value: Any,
    overrides: Mapping[str, str],
    own_source: ConfigSource,
    inherited: tuple[SynonymValue, ...],
) -> DescribedConfig:
    shown = None if setting.sensitive else setting.render(value)
    if setting.name in overrides:
        inherited = (SynonymValue(setting.name, shown, own_source), *inherited)
    source = inherited[0].source if inherited else ConfigSource.DEFAULT
    return DescribedConfig(setting.name, shown, source, False, setting.sensitive, setting.kind, inherited, setting.doc)


def _described(name: str) -> Setting[object] | None:
    """Return the broker setting with this name, if it is one that DescribeConfigs knows."""
    setting = declared(name, BROKER_SETTINGS)
    return None if setting is None or setting.of_plugin else setting


def _broker_entry(name: str, value: str | None, synonyms: tuple[SynonymValue, ...]) -> DescribedConfig:
    setting = _described(name)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    if setting is None:
        # Unknown settings are hidden, because they might be secrets.
        return DescribedConfig(name, None, source, True, True, SettingKind.UNKNOWN, synonyms, None)
    read_only = (name != setting.name and setting.scope is None) or setting.dynamic is Dynamic.READ_ONLY
    shown = None if setting.sensitive else value
    doc = setting.doc if name == setting.name else None
    return DescribedConfig(name, shown, source, read_only, setting.sensitive, setting.kind, synonyms, doc)


def _broker_values(node: NodeConfig, name: str) -> tuple[SynonymValue, ...]:
    """List all values given under a broker setting's names, in order of precedence, from the setting's own name on."""
    setting = _described(name)
    sensitive = setting is None or setting.sensitive
    if setting is None or (setting.name == name and not setting.synonyms):
        names: tuple[str, ...] = (name,)
    else:
        names = setting.synonyms if setting.name == name else (name, setting.name)
    found: list[SynonymValue] = []
    for values, source in (
        (node.dynamic_broker, ConfigSource.DYNAMIC_BROKER),
        (node.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (node.static, ConfigSource.STATIC_BROKER),
    ):
        found += [SynonymValue(n, None if sensitive else values[n], source) for n in names if n in values]
    for n in names:
        known = BROKER_SETTINGS.get(n)
        default = None if known is None or known.of_plugin else known.render(known.default)
        if default is not None:
            found.append(SynonymValue(n, None if sensitive else default, ConfigSource.DEFAULT))
    # Kafka drops the entries before the setting's own name: `log.retention.ms` does not list a `log.retention.hours`
    # that only a file sets.
    start = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[start:])
