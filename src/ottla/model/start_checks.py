"""Checks a broker's own configuration as a whole before the broker starts.

Single values are checked when they are parsed; these are the rules between them. All problems are returned, not only
the first, so that an operator can correct the file at once.
"""

from collections.abc import Iterator

from ottla.model import group_settings
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import SCOPE_MARK, declared
from ottla.model.errors import ApiError
from ottla.model.limits import MIB
from ottla.model.node_config import NodeConfig
from ottla.model.setting import Setting
from ottla.model.settings import cleaner, groups, log, network, node, replication
from ottla.model.tenancy.scoped import check_scope
from ottla.model.topic_settings import RETENTION_MS, SEGMENT_JITTER_MS, SEGMENT_MS

# Group settings whose broker default must lie between the bounds for groups.
_BOUNDED: tuple[Setting[int], ...] = (
    group_settings.CONSUMER_SESSION_TIMEOUT_MS,
    group_settings.CONSUMER_HEARTBEAT_INTERVAL_MS,
    group_settings.STREAMS_SESSION_TIMEOUT_MS,
    group_settings.STREAMS_HEARTBEAT_INTERVAL_MS,
    group_settings.SHARE_SESSION_TIMEOUT_MS,
    group_settings.SHARE_HEARTBEAT_INTERVAL_MS,
)


def start_problems(config: NodeConfig) -> list[str]:
    """List the contradictions in a broker's configuration; empty if the broker may start."""
    return [
        *_node_problems(config),
        *_log_problems(config),
        *_network_problems(config),
        *_group_problems(config),
        *_scoped_problems(config),
    ]


def _node_problems(config: NodeConfig) -> Iterator[str]:
    broker = config.broker
    if broker.is_set(node.NODE_ID) and broker[node.NODE_ID] != broker[node.BROKER_ID]:
        yield "You must set `node.id` to the same value as `broker.id`."
    if broker[replication.REPLICA_FETCH_WAIT_MAX_MS] > broker[replication.REPLICA_SOCKET_TIMEOUT_MS]:
        yield "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms"
    if broker[replication.REPLICA_FETCH_WAIT_MAX_MS] > broker[replication.REPLICA_LAG_TIME_MAX_MS]:
        yield "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms"


def _log_problems(config: NodeConfig) -> Iterator[str]:
    broker = config.broker
    topic = config.topic_defaults
    if topic[RETENTION_MS] == 0:
        yield "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    if topic[SEGMENT_MS] < 1:
        yield "log.roll.ms must be greater than or equal to 1"
    if topic[SEGMENT_JITTER_MS] < 0:
        yield "log.roll.jitter.ms must be greater than or equal to 0"
    if broker[cleaner.LOG_CLEANER_DEDUPE_BUFFER_SIZE] <= MIB * max(1, broker[cleaner.LOG_CLEANER_THREADS]):
        yield "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
    directories = broker[log.LOG_DIRS] or broker[log.LOG_DIR]
    cordoned = broker[log.CORDONED_LOG_DIRS]
    missing = [name for name in cordoned if name != "*" and name not in directories]
    if missing:
        entries = ", ".join(missing)
        yield f"All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : {entries}"


def _network_problems(config: NodeConfig) -> Iterator[str]:
    broker = config.broker
    if 0 < broker[network.QUEUED_MAX_REQUEST_BYTES] < broker[network.SOCKET_REQUEST_MAX_BYTES]:
        yield "queued.max.request.bytes must be larger or equal to socket.request.max.bytes"
    if broker[network.MAX_CONNECTIONS_PER_IP] == 0 and not broker[network.MAX_CONNECTIONS_PER_IP_OVERRIDES]:
        yield "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
    both = (network.INTER_BROKER_LISTENER_NAME, network.SECURITY_INTER_BROKER_PROTOCOL)
    if all(setting.name in config.static for setting in both):
        yield "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."


def _group_problems(config: NodeConfig) -> Iterator[str]:
    broker = config.broker
    for setting in _BOUNDED:
        (value,), low, high = setting.follows, setting.low, setting.high
        assert low is not None and high is not None
        if broker[low] > broker[high]:
            yield f"{high.name} must be greater than or equal to {low.name}"
        elif config.group_defaults[setting] < broker[low]:
            yield f"{value.name} must be greater than or equal to {low.name}"
        elif config.group_defaults[setting] > broker[high]:
            yield f"{value.name} must be less than or equal to {high.name}"
    if not 0 <= broker[groups.OFFSETS_TOPIC_COMPRESSION_CODEC] <= 4:
        yield f"Unknown compression type id: {broker[groups.OFFSETS_TOPIC_COMPRESSION_CODEC]}"


def _scoped_problems(config: NodeConfig) -> Iterator[str]:
    """Values for one tenant or prefix: only names without `@` are parsed with the file."""
    for name, text in config.static.items():
        setting = declared(name, BROKER_SETTINGS)
        if setting is not None and SCOPE_MARK in name:
            try:
                check_scope(setting, name)
                setting.parse(text)
            except ApiError as error:
                yield error.text
            else:
                yield (
                    f"{name} has no effect in a properties file: limits of one tenant or prefix belong to the whole "
                    f"cluster: `ottla config set broker default {name}={text}`"
                )
