"""Checks whether a new configuration is allowed: unknown names, bad values, values that contradict each other.

The order of the checks and the wording are Kafka's (observed on a real broker), since clients see the first problem
only. A topic's, group's or subscription's error is INVALID_CONFIG with few exceptions; a broker's is INVALID_REQUEST.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ottla.model import client_metrics_settings, group_settings, topic_settings
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.client_metrics_settings import CLIENT_METRICS_SETTINGS
from ottla.model.config import Config, declared
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.group_settings import GROUP_SETTINGS
from ottla.model.node_config import NodeConfig
from ottla.model.setting import Dynamic, Setting
from ottla.model.settings.tiered import REMOTE_LOG_STORAGE_SYSTEM_ENABLE
from ottla.model.tenancy.scoped import check_scope
from ottla.model.topic_settings import TOPIC_SETTINGS
from ottla.model.validators import invalid

# Key material may be changed only per listener: a change for all listeners at once would cut off brokers half way.
_LISTENER_ONLY = ("ssl.key.password", "ssl.keystore.", "ssl.truststore.")
_PUSH_INTERVAL_MS_MIN = 100
_PUSH_INTERVAL_MS_MAX = 3_600_000


def check_topic_config(node: NodeConfig, new: Mapping[str, str], old: Mapping[str, str] | None = None) -> None:
    """Raise INVALID_CONFIG unless a topic may have the values `new` (all of its own values, not only changed ones)."""
    _refuse_unknown(new, TOPIC_SETTINGS, "Unknown topic config name")
    _parse_all(new, TOPIC_SETTINGS)
    config = node.topic(new)
    low, high = config[topic_settings.MIN_COMPACTION_LAG_MS], config[topic_settings.MAX_COMPACTION_LAG_MS]
    if low > high:
        _refuse(f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})")
    _check_remote(node, config, node.topic(old))


def _check_remote(node: NodeConfig, new: Config, old: Config) -> None:
    """Check the rules of tiered storage for a topic's settings."""
    remote = topic_settings.REMOTE_STORAGE_ENABLE
    if not new[remote]:
        if old[remote] and not new[topic_settings.REMOTE_LOG_DELETE_ON_DISABLE]:
            _refuse(
                "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote "
                "data and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If "
                "you want to disable remote storage and delete all remote data, please set "
                "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
            )
        return
    if not node.broker[REMOTE_LOG_STORAGE_SYSTEM_ENABLE]:
        _refuse(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if "compact" in new[topic_settings.CLEANUP_POLICY]:
        _refuse(
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
        )
    for local, whole in (
        (topic_settings.LOCAL_RETENTION_BYTES, topic_settings.RETENTION_BYTES),
        (topic_settings.LOCAL_RETENTION_MS, topic_settings.RETENTION_MS),
    ):
        _check_local_retention(new, local, whole)


def _check_local_retention(config: Config, local: Setting[int], whole: Setting[int]) -> None:
    """Check that local retention is not above total retention, and equals it when no segment is copied out."""
    kept, limit = config[local], config[whole]
    if kept == -1 and limit != -1:
        problem = f"Value must not be -1 as {whole.name} value is set as {limit}."
        _refuse(invalid(local.name, kept, problem))
    if kept > limit >= 0:
        _refuse(invalid(local.name, kept, f"Value must not be more than {whole.name} property value: {limit}"))
    if config[topic_settings.REMOTE_LOG_COPY_DISABLE] and kept not in (-2, limit):
        _refuse(
            f"When `remote.log.copy.disable` is set to true, the `{local.name}` and `{whole.name}` must be set to the "
            "identical value because there will be no more logs copied to the remote storage."
        )


def check_group_config(node: NodeConfig, new: Mapping[str, str]) -> None:
    """Raise INVALID_CONFIG unless a group may have the values `new`."""
    _refuse_unknown(new, GROUP_SETTINGS, "Unknown group config name")
    _parse_all(new, GROUP_SETTINGS)
    config = node.group(new)
    for setting in GROUP_SETTINGS.values():
        if setting.low is not None and config[setting] < node.broker[setting.low]:
            _refuse(f"{setting.name} must be greater than or equal to {setting.low.name}")
        if setting.high is not None and config[setting] > node.broker[setting.high]:
            _refuse(f"{setting.name} must be less than or equal to {setting.high.name}")
    for session, heartbeat in (
        (group_settings.CONSUMER_SESSION_TIMEOUT_MS, group_settings.CONSUMER_HEARTBEAT_INTERVAL_MS),
        (group_settings.SHARE_SESSION_TIMEOUT_MS, group_settings.SHARE_HEARTBEAT_INTERVAL_MS),
        (group_settings.STREAMS_SESSION_TIMEOUT_MS, group_settings.STREAMS_HEARTBEAT_INTERVAL_MS),
    ):
        if config[session] <= config[heartbeat]:
            _refuse(f"{session.name} must be greater than {heartbeat.name}")


def check_client_metrics_config(name: str, new: Mapping[str, str]) -> None:
    """Raise INVALID_REQUEST or INVALID_CONFIG unless a subscription may have the values `new`. The patterns of clients
    in `match` are checked by `telemetry/subscription.py`.
    """
    if not name:
        _refuse("Subscription name can't be empty", ErrorCode.INVALID_REQUEST)
    _refuse_unknown(new, CLIENT_METRICS_SETTINGS, "Unknown client metrics configuration", ErrorCode.INVALID_REQUEST)
    values = _parse_all(new, CLIENT_METRICS_SETTINGS)
    interval_ms = values.get(client_metrics_settings.INTERVAL_MS.name, _PUSH_INTERVAL_MS_MIN)
    if not _PUSH_INTERVAL_MS_MIN <= interval_ms <= _PUSH_INTERVAL_MS_MAX:
        _refuse(
            f"Invalid value {interval_ms} for interval.ms, interval must be between {_PUSH_INTERVAL_MS_MIN} and "
            f"{_PUSH_INTERVAL_MS_MAX} (1 hour)",
            ErrorCode.INVALID_REQUEST,
        )


def check_broker_change(changes: Mapping[str, str | None], *, per_broker: bool) -> None:
    """Raise INVALID_REQUEST unless these broker values (None: removed) may change while the broker runs.

    `per_broker` says whether one broker is meant or the default of all. Unknown names pass, as in Kafka: they may
    belong to a plug-in.
    """
    _refuse_some(changes, _is_read_only, "Cannot update these configs dynamically")
    _refuse_some(
        changes,
        _needs_listener,
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    if not per_broker:
        _refuse_some(
            changes,
            _is_per_broker,
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    for name, text in changes.items():
        setting = declared(name, BROKER_SETTINGS)
        if setting is not None and text is not None:
            try:
                check_scope(setting, name)
                setting.parse(text)
            except ApiError as error:
                raise ApiError(ErrorCode.INVALID_REQUEST, error.message) from None


def _is_read_only(name: str) -> bool:
    return name in BROKER_SETTINGS and BROKER_SETTINGS[name].dynamic is Dynamic.READ_ONLY


def _is_per_broker(name: str) -> bool:
    setting = declared(name, BROKER_SETTINGS)
    return setting is not None and setting.dynamic is Dynamic.PER_BROKER


def _needs_listener(name: str) -> bool:
    return name.startswith(_LISTENER_ONLY)


def _refuse_some(names: Iterable[str], matches: Callable[[str], bool], problem: str) -> None:
    found = [name for name in names if matches(name)]
    if found:
        _refuse(f"{problem}: [{', '.join(found)}]", ErrorCode.INVALID_REQUEST)


def _refuse_unknown(
    names: Iterable[str], known: Collection[str], problem: str, code: ErrorCode = ErrorCode.INVALID_CONFIG
) -> None:
    for name in names:
        if name not in known:
            _refuse(f"{problem}: {name}", code)


def _parse_all(texts: Mapping[str, str], settings: Mapping[str, Setting[Any]]) -> dict[str, Any]:
    """Parse in the order of declaration, so that of several bad values Kafka's first is reported."""
    return {name: setting.parse(texts[name]) for name, setting in settings.items() if name in texts}


def _refuse(problem: str, code: ErrorCode = ErrorCode.INVALID_CONFIG) -> None:
    raise ApiError(code, problem)
