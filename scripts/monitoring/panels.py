"""The panels of the dashboard, in rows."""

from __future__ import annotations

from typing import NamedTuple

from ottla.observe.metrics.catalogue import (
    clients,
    connections,
    coordinators,
    lag,
    loop,
    partitions,
    process,
    quorum,
    registry,
    requests,
    storage,
    topics,
)
from ottla.observe.metrics.declaration import Metric
from scripts.monitoring.promql import Selectors, highest, total

WINDOW = "$__rate_interval"
ALL = Selectors('job="$job"')  # of the cluster
SOME = Selectors('job="$job",instance=~"$instance"')  # of the chosen nodes
TOPIC, GROUP = 'topic=~"$topic"', 'group=~"$group"'
NODE = "{{instance}}"
WIDTH = 24  # of Grafana's grid


class Query(NamedTuple):
    expression: str
    legend: str


class Panel(NamedTuple):
    title: str
    help: str
    unit: str  # one of Grafana's
    queries: tuple[Query, ...]
    width: int = 8
    stacked: bool = False


class Stat(NamedTuple):
    """One figure, red from a value on, or below one."""

    title: str
    help: str
    expression: str
    red_from: float | None = None
    green_from: float | None = None


class Row(NamedTuple):
    title: str
    panels: tuple[Panel | Stat, ...]


def _worst(title: str, metric: Metric, help: str) -> Stat:
    """A figure of the cluster that each node tells: the highest counts."""
    return Stat(title, help, highest(ALL.of(metric)), red_from=1)


def _sum(title: str, metric: Metric, help: str = "") -> Stat:
    """A figure of which each node tells its part."""
    return Stat(title, help or metric.help, total(ALL.of(metric)), red_from=1)


def _gauge(title: str, metric: Metric, unit: str = "short", *, labels: tuple[str, ...] = (), width: int = 8) -> Panel:
    """A gauge of the chosen nodes, by node or by these labels."""
    if not labels:
        return Panel(title, metric.help, unit, (Query(SOME.of(metric), NODE),), width)
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    return Panel(title, metric.help, unit, (Query(total(SOME.of(metric), *labels), legend),), width, stacked=True)


def _by_topic(title: str, metric: Metric, unit: str, *, rate: bool = True) -> Panel:
    figure = SOME.rate(metric, TOPIC, window=WINDOW) if rate else SOME.of(metric, TOPIC)
    return Panel(title, metric.help, unit, (Query(total(figure, "topic"), "{{topic}}"),))


def _rate(metric: Metric, legend: str, *by: str, matchers: tuple[str, ...] = ()) -> Query:
    return Query(total(SOME.rate(metric, *matchers, window=WINDOW), *by), legend)


UP = Stat("Nodes up", "Nodes that Prometheus could scrape.", 'sum by (job) (up{job="$job"})', green_from=1)
CONTROLLERS = Stat(
    "Active controllers", "It has to be 1.", total(ALL.of(quorum.ACTIVE_CONTROLLER)), green_from=1, red_from=2
)

ROWS = (
    Row(
        "Health",
        (
            UP,
            CONTROLLERS,
            _worst("Offline partitions", quorum.OFFLINE_PARTITIONS, "Partitions without a leader."),
            _sum("Under min ISR", partitions.UNDER_MIN_ISR),
            _sum("At min ISR", partitions.AT_MIN_ISR),
            _sum("Under-replicated", partitions.UNDER_REPLICATED),
            _worst("Fenced brokers", quorum.FENCED_BROKERS, quorum.FENCED_BROKERS.help),
            _sum("Offline directories", partitions.OFFLINE_DIRECTORIES),
        ),
    ),
    Row(
        "Replication and metadata",
        (
            _gauge("Under-replicated partitions", partitions.UNDER_REPLICATED),
            Panel(
                "ISR shrinks and expands",
                "Replicas that left the in-sync replicas, and that joined them.",
                "ops",
                (_rate(partitions.ISR_SHRINKS, "shrinks"), _rate(partitions.ISR_EXPANDS, "expands")),
            ),
            Panel(
                "Leader elections",
                "Partitions that got another leader, unclean: one that may lack records, and changes of the active "
                "controller; the node that saw most.",
                "ops",
                (
                    Query(highest(SOME.rate(partitions.LEADER_CHANGES, window=WINDOW)), "partitions"),
                    Query(highest(SOME.rate(quorum.UNCLEAN, window=WINDOW)), "unclean"),
                    Query(highest(SOME.rate(quorum.QUORUM_CHANGES, window=WINDOW)), "controller"),
                ),
            ),
            _gauge("Partitions led", partitions.LEADER_COUNT),
            _gauge("Metadata lag", quorum.METADATA_LAG),
            Panel(
                "Brokers and partitions of the cluster",
                "As controllers tell them.",
                "short",
                (
                    Query(highest(SOME.of(quorum.ACTIVE_BROKERS)), "brokers"),
                    Query(highest(SOME.of(quorum.TOPIC_COUNT)), "topics"),
                    Query(highest(SOME.of(quorum.PARTITIONS_OF_CLUSTER)), "partitions"),
                    Query(highest(SOME.of(quorum.PREFERRED_IMBALANCE)), "not led by the preferred replica"),
                ),
            ),
        ),
    ),
    Row(
        "Topics",
        (
            _by_topic("Records in", topics.MESSAGES_IN, "cps"),
            _by_topic("Bytes in", topics.BYTES_IN, "Bps"),
            _by_topic("Bytes out", topics.BYTES_OUT, "Bps"),
            _by_topic("Size", topics.LOG_SIZE, "bytes", rate=False),
            Panel(
                "Refused",
                "Batches of producers and partitions of fetches that were refused.",
                "ops",
                (
                    _rate(topics.FAILED_PRODUCE, "produce {{topic}}", "topic", matchers=(TOPIC,)),
                    _rate(topics.FAILED_FETCH, "fetch {{topic}}", "topic", matchers=(TOPIC,)),
                ),
            ),
            _by_topic("Held back by open transactions", topics.UNSTABLE, "short", rate=False),
        ),
    ),
    Row(
        "Storage",
        (
            Panel(
                "Free, of the disk",
                storage.DISK_FREE.help,
                "percentunit",
                (Query(f"{SOME.of(storage.DISK_FREE)} / {SOME.of(storage.DISK_SIZE)}", NODE + " {{directory}}"),),
            ),
            Panel(
                "99 of 100 syncs took at most",
                storage.FLUSH.help,
                "ms",
                (Query(SOME.of(storage.FLUSH, 'quantile="0.99"'), NODE),),
            ),
            Panel(
                "Retention and compaction",
                "Bytes that retention deleted, and that compactions went through.",
                "Bps",
                (_rate(storage.RETAINED_BYTES, "deleted"), _rate(storage.CLEANED_BYTES, "compacted")),
            ),
            Panel(
                "What waited for disks",
                "Reads of what was not in the page cache, and writes to a slow disk.",
                "ops",
                (_rate(storage.COLD_READS, "cold reads"), _rate(storage.SLOW_WRITES, "slow writes")),
            ),
            Panel(
                "Memory of requests, of what they may hold",
                storage.MEMORY.help,
                "percentunit",
                (Query(f"{SOME.of(storage.MEMORY)} / {SOME.of(storage.MEMORY_MAX)}", NODE),),
            ),
            _gauge("Waiting requests", storage.WAITING),
        ),
    ),
    Row(
        "Requests",
        (
            Panel("Requests", requests.REQUESTS.help, "reqps", (_rate(requests.REQUESTS, "{{request}}", "request"),)),
            Panel(
                "99 of 100 requests took at most",
                requests.TOTAL_TIME.help + " The slowest node.",
                "ms",
                (Query(highest(SOME.of(requests.TOTAL_TIME, 'quantile="0.99"'), "request"), "{{request}}"),),
            ),
            Panel(
                "Errors",
                requests.ERRORS.help,
                "ops",
                (_rate(requests.ERRORS, "{{request}} {{error}}", "request", "error", matchers=('error!="NONE"',)),),
            ),
            Panel(
                "Mean time, with waits",
                requests.TOTAL_TIME.help,
                "ms",
                (Query(SOME.mean(requests.TOTAL_TIME, "request", window=WINDOW), "{{request}}"),),
            ),
            Panel(
                "Mean time, without waits",
                requests.LOCAL_TIME.help,
                "ms",
                (Query(SOME.mean(requests.LOCAL_TIME, "request", window=WINDOW), "{{request}}"),),
            ),
            Panel(
                "Mean time of waiting for others",
                requests.REMOTE_TIME.help,
                "ms",
                (Query(SOME.mean(requests.REMOTE_TIME, "request", window=WINDOW), "{{request}}"),),
            ),
            Panel(
                "Mean time in queues and of sending",
                "How long requests and answers waited behind others, and clients took to read answers.",
                "ms",
                (
                    Query(SOME.mean(requests.QUEUE_TIME, "request", window=WINDOW), "{{request}} request"),
                    Query(SOME.mean(requests.ANSWER_QUEUE_TIME, "request", window=WINDOW), "{{request}} answer"),
                    Query(SOME.mean(requests.SEND_TIME, "request", window=WINDOW), "{{request}} sent"),
                ),
            ),
            Panel(
                "Throttled",
                connections.THROTTLED.help,
                "s",
                (Query(SOME.mean(connections.THROTTLED, "request", window=WINDOW), "{{request}}"),),
            ),
        ),
    ),
    Row(
        "Event loop",
        (
            _gauge("Idle", loop.IDLE, "percentunit"),
            Panel(
                "Delay: 99 of 100 callbacks at most",
                loop.DELAY.help,
                "s",
                (Query(SOME.of(loop.DELAY, 'quantile="0.99"'), NODE),),
            ),
            Panel("Stalls", loop.STALLS.help, "ops", (_rate(loop.STALLS, NODE, "instance"),)),
        ),
    ),
    Row(
        "Groups and transactions",
        (
            Panel(
                "Lag in records",
                lag.GROUP_LAG.help,
                "short",
                (Query(highest(SOME.of(lag.GROUP_LAG, GROUP), "group"), "{{group}}"),),
            ),
            Panel(
                "Lag in seconds",
                lag.GROUP_LAG_TIME.help,
                "s",
                (Query(highest(SOME.of(lag.GROUP_LAG_TIME, GROUP), "group"), "{{group}}"),),
            ),
            Panel(
                "Lag by partition",
                lag.PARTITION_LAG.help,
                "short",
                (
                    Query(
                        highest(SOME.of(lag.PARTITION_LAG, GROUP, TOPIC), "group", "topic", "partition"),
                        "{{group}} {{topic}}-{{partition}}",
                    ),
                ),
            ),
            _gauge("Groups", coordinators.GROUPS, labels=("kind", "state")),
            _gauge("Members", coordinators.GROUP_MEMBERS, labels=("kind",), width=4),
            Panel(
                "Rebalances",
                coordinators.REBALANCES.help,
                "ops",
                (_rate(coordinators.REBALANCES, NODE, "instance"),),
                4,
            ),
            _gauge("Lags that are not known", lag.UNKNOWN_LAGS),
            _gauge("Share groups: in flight", lag.IN_FLIGHT, labels=("group",)),
            Panel(
                "Share groups: acknowledged and given up",
                "Records that members accepted, those rejected or delivered too often, and dead letters written.",
                "cps",
                (
                    _rate(lag.ACKNOWLEDGED, "acknowledged {{group}}", "group", matchers=(GROUP,)),
                    _rate(lag.ARCHIVED, "given up {{group}}", "group", matchers=(GROUP,)),
                    _rate(storage.LETTERS, "dead letters"),
                ),
            ),
            _gauge("Transactions", coordinators.TRANSACTIONS, labels=("state",), width=4),
            _gauge("Oldest transaction", coordinators.OLDEST_TRANSACTION, "s", width=4),
        ),
    ),
    Row(
        "Clients",
        (
            _gauge("Connections", connections.CONNECTIONS, labels=("listener", "state")),
            Panel(
                "Logins",
                "Clients that proved who they are, and that did not.",
                "ops",
                (
                    _rate(connections.LOGINS, "ok {{listener}} {{mechanism}}", "listener", "mechanism"),
                    _rate(connections.FAILED_LOGINS, "failed {{listener}} {{mechanism}}", "listener", "mechanism"),
                ),
            ),
            _gauge("Client instances that push metrics", clients.INSTANCES),
        ),
    ),
    Row(
        "Process",
        (
            Panel("CPU", process.CPU.help, "percentunit", (_rate(process.CPU, NODE, "instance"),)),
            _gauge("Memory", process.RESIDENT, "bytes"),
            Panel(
                "Open files, of those allowed",
                process.OPEN_FILES.help,
                "percentunit",
                (Query(f"{SOME.of(process.OPEN_FILES)} / {SOME.of(process.MAX_FILES)}", NODE),),
            ),
            _gauge("Threads", process.THREADS),
            Panel(
                "Garbage collections", process.COLLECTIONS.help, "ops", (_rate(process.COLLECTIONS, NODE, "instance"),)
            ),
            _gauge("Time since the start", process.UPTIME, "s"),
        ),
    ),
    Row(
        "Schema registry",
        (
            Panel(
                "Requests of the registry",
                registry.REQUESTS.help,
                "reqps",
                (Query(total(ALL.rate(registry.REQUESTS, window=WINDOW), "method", "route"), "{{method}} {{route}}"),),
            ),
            Panel(
                "Errors of the registry",
                registry.ERRORS.help,
                "ops",
                (Query(total(ALL.rate(registry.ERRORS, window=WINDOW), "status", "route"), "{{status}} {{route}}"),),
            ),
            Panel(
                "Subjects",
                registry.SUBJECTS.help,
                "short",
                (
                    Query(highest(ALL.of(registry.SUBJECTS)), "subjects"),
                    Query(highest(ALL.of(registry.SCHEMAS)), "versions"),
                ),
            ),
        ),
    ),
)
