"""The alerts: what has to be wrong for how long, why it matters, and what to do.

Times are given at their real length and shortened by a pace, so that tests need not wait for minutes.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.errors import ErrorCode
from ottla.observe.metrics.catalogue import (
    connections,
    coordinators,
    lag,
    loop,
    partitions,
    process,
    quorum,
    requests,
    storage,
)
from scripts.monitoring.promql import Selectors, highest, total

# The jobs of Prometheus that scrape nodes of Ottla; each is one cluster.
NODES = Selectors('job=~"ottla.*"')
MINUTE = 60
AT_NODE = "node {{ $labels.instance }}"

# What is no fault of the client.
FAULTS = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


class Pace(NamedTuple):
    """How many seconds of the alerts pass in one."""

    factor: int = 1

    def seconds(self, seconds: int) -> int:
        return seconds // self.factor

    def time(self, seconds: int) -> str:
        shortened = self.seconds(seconds)
        return f"{shortened // MINUTE}m" if shortened and shortened % MINUTE == 0 else f"{shortened}s"


class Alert(NamedTuple):
    name: str
    severity: str  # critical: somebody has to act now; warning: in working hours
    expression: str
    pending: str  # for how long it has to be so
    summary: str
    meaning: str
    remedy: str
    fault: str  # how a test makes it fire on real nodes

    @property
    def page(self) -> str:
        """Where docs/alerts.md tells of it."""
        return f"docs/alerts.md#{self.name.lower()}"


def alerts(pace: Pace) -> tuple[Alert, ...]:
    """Return all alerts, in the order of the documentation."""
    return (*_nodes(pace), *_partitions(pace), *_requests(pace), *_groups(pace), *_process(pace))


def _nodes(pace: Pace) -> tuple[Alert, ...]:
    applied = f"({NODES.of(quorum.QUORUM_HIGH_WATERMARK)} - {NODES.of(quorum.METADATA_LAG)})"
    return (
        Alert(
            "OttlaNodeDown",
            "critical",
            f"up{{{NODES.scope}}} == 0",
            pace.time(MINUTE),
            f"{AT_NODE} cannot be scraped",
            "The node does not run, or its machine or its network is down. Others lead its partitions; one more that "
            "goes down may stop writes.",
            "Look at its log and at its service (`systemctl status ottla`); start it again. If its machine is lost, "
            "start a node with the same node.id on an empty disk: it fetches what it had.",
            "a node is killed",
        ),
        Alert(
            "OttlaNoActiveController",
            "critical",
            f"{total(NODES.of(quorum.ACTIVE_CONTROLLER))} == 0",
            pace.time(MINUTE),
            "no controller is active",
            "The quorum has no majority. Records are written and read as long as leaders live, but nothing can change: "
            "no new leader, no topic, no member of the in-sync replicas.",
            "Start the controllers that are down. `ottla cluster quorum` tells the voters and who leads.",
            "two of three nodes are killed",
        ),
        Alert(
            "OttlaTwoActiveControllers",
            "critical",
            f"{total(NODES.of(quorum.ACTIVE_CONTROLLER))} > 1",
            pace.time(2 * MINUTE),
            "{{ $value }} controllers say that they are active",
            "Only one of them has a majority and can change anything; the others have not noticed yet. Should it last, "
            "nodes of two clusters may be scraped in one job.",
            f"Compare `ottla cluster quorum` asked at each node, and the label `cluster` of `{process.BUILD.name}`.",
            "nodes of two clusters are scraped in one job",
        ),
        Alert(
            "OttlaBrokerFenced",
            "warning",
            f"{highest(NODES.of(quorum.FENCED_BROKERS))} > 0",
            pace.time(5 * MINUTE),
            "{{ $value }} brokers are registered and fenced",
            "A fenced broker leads nothing and serves no client: it is down, cannot reach the active controller, or "
            "its start does not end.",
            "`ottla cluster status` names it. Look at its log; if it is gone for good: "
            "`ottla cluster remove-broker ID`.",
            "a node is killed",
        ),
        Alert(
            "OttlaMetadataBehind",
            "warning",
            f"{highest(NODES.of(quorum.QUORUM_HIGH_WATERMARK))} - on (job) group_right () {applied} > 1000",
            pace.time(5 * MINUTE),
            f"{AT_NODE} is {{{{ $value }}}} metadata records behind",
            "The node does not know the newest topics, leaders and rights. It cannot reach the active controller, or "
            "its event loop has no time left.",
            "Check the network between the node and the controllers, and its event loop.",
            "a node is cut off from the others",
        ),
    )


def _partitions(pace: Pace) -> tuple[Alert, ...]:
    return (
        Alert(
            "OttlaPartitionsOffline",
            "critical",
            f"{highest(NODES.of(quorum.OFFLINE_PARTITIONS))} > 0",
            pace.time(MINUTE),
            "{{ $value }} partitions have no leader",
            "They can be neither written nor read: no replica that may lead them is alive.",
            "Start the brokers that are down. `ottla doctor` names the partitions. `ottla cluster elect --unclean` "
            "lets a replica lead that was not in sync, and loses the records that it does not have.",
            "the only replica's node is killed",
        ),
        Alert(
            "OttlaUncleanElection",
            "critical",
            f"{highest(f'increase({NODES.of(quorum.UNCLEAN, window=pace.time(15 * MINUTE))})')} > 0",
            "0s",
            "replicas lead partitions that were not in sync",
            "All replicas in sync were gone, and one that was not was made the leader: acknowledged records may be "
            "lost, and consumers may be ahead of the log.",
            "Compare what producers and consumers know with what the topics have. `ottla config get broker default` "
            "tells whether unclean.leader.election.enable is set.",
            "a replica that is not in sync is elected",
        ),
        Alert(
            "OttlaUnderMinIsr",
            "critical",
            f"{total(NODES.of(partitions.UNDER_MIN_ISR))} > 0",
            pace.time(MINUTE),
            "{{ $value }} partitions have fewer in-sync replicas than min.insync.replicas",
            "Producers with acks=all are refused (NOT_ENOUGH_REPLICAS) until enough replicas are in sync again.",
            "Start the brokers that are down. `ottla doctor` names the partitions and their replicas.",
            "one of three nodes with min.insync.replicas=3 is killed",
        ),
        Alert(
            "OttlaUnderReplicated",
            "warning",
            f"{total(NODES.of(partitions.UNDER_REPLICATED))} > 0",
            pace.time(10 * MINUTE),
            "{{ $value }} partitions have replicas that are not in sync",
            "One more failure may stop writes or lose the last copy. A broker is down or too slow to follow.",
            "Look for brokers that are down, and at disk and network of those that follow slowly.",
            "a node is killed",
        ),
        Alert(
            "OttlaDirectoryOffline",
            "critical",
            f"{NODES.of(partitions.OFFLINE_DIRECTORIES)} > 0",
            pace.time(MINUTE),
            f"{AT_NODE} has lost {{{{ $value }}}} data directories",
            "The disk refused to read or to write. The replicas in it are gone until it works again; others lead.",
            "Replace the disk, make the directory anew and restart the node: it fetches what was there.",
            "a data directory is replaced by a file",
        ),
        Alert(
            "OttlaDiskFills",
            "warning",
            f"{NODES.of(storage.DISK_FREE)} / {NODES.of(storage.DISK_SIZE)} < 0.1",
            pace.time(10 * MINUTE),
            f"{AT_NODE} has {{{{ $value | humanizePercentage }}}} of a disk left",
            "The disk of {{ $labels.directory }} is nearly full. When it is, records are refused.",
            "Let retention delete more (`ottla topic alter`), move partitions to other nodes "
            "(`ottla cluster balance`), or give the node more room.",
            "a disk is filled",
        ),
    )


def _requests(pace: Pace) -> tuple[Alert, ...]:
    window = pace.time(5 * MINUTE)
    faults = f'error=~"{"|".join(each.name for each in FAULTS)}"'
    errors = NODES.rate(requests.ERRORS, faults, window=window)
    failed = NODES.rate(connections.FAILED_LOGINS, window=window)
    return (
        Alert(
            "OttlaRequestErrors",
            "warning",
            f"{total(errors, 'instance', 'request', 'error')} > 0.1",
            pace.time(5 * MINUTE),
            f"{AT_NODE} answers {{{{ $labels.request }}}} with {{{{ $labels.error }}}}",
            "Clients get {{ $value | humanize }} such errors in a second, through no fault of theirs. They try again "
            "and are late, or give up.",
            "The error says where to look: NOT_ENOUGH_REPLICAS and REQUEST_TIMED_OUT at replication, "
            "KAFKA_STORAGE_ERROR at disks, UNKNOWN_SERVER_ERROR in the log of the node.",
            "a producer writes with acks=all to a partition with too few replicas",
        ),
        Alert(
            "OttlaAuthenticationFailures",
            "warning",
            f"{total(failed, 'instance', 'listener', 'mechanism')} > 0.1",
            "0s",
            f"many failed logins at {AT_NODE}",
            "At listener {{ $labels.listener }} {{ $value | humanize }} clients in a second did not prove who they "
            "are: a password or certificate has changed or expired, or somebody guesses.",
            "The log of the node names the addresses. `ottla user list` tells which users there are.",
            "clients log in with a wrong password",
        ),
        Alert(
            "OttlaEventLoopSaturated",
            "warning",
            f"avg_over_time({NODES.of(loop.IDLE, window=window)}) < 0.1",
            pace.time(5 * MINUTE),
            f"the event loop of {AT_NODE} has no time left",
            "The node works at its limit, idle for {{ $value | humanizePercentage }} of the time; latencies grow.",
            "Look at requests and throughput for who causes it: set quotas, give partitions to other nodes "
            "(`ottla cluster balance`), or add a node.",
            "a client floods a node with requests",
        ),
        Alert(
            "OttlaEventLoopSlow",
            "warning",
            f"{NODES.mean(loop.DELAY, 'instance', window=window)} > 0.1",
            pace.time(5 * MINUTE),
            f"the event loop of {AT_NODE} is late",
            "Requests wait {{ $value | humanizeDuration }} on average before anybody looks at them. The node has too "
            "little CPU, is paused (a virtual machine that moves, memory that is swapped), or something holds the "
            "loop.",
            f"Compare `{loop.STALLS.name}`: if it grows, the log says what held the loop; if not, it is the machine.",
            "a node is paused again and again",
        ),
    )


def _groups(pace: Pace) -> tuple[Alert, ...]:
    now = highest(NODES.of(lag.GROUP_LAG_TIME), "group", "kind")
    before = highest(f"{NODES.of(lag.GROUP_LAG_TIME)} offset {pace.time(10 * MINUTE)}", "group", "kind")
    return (
        Alert(
            "OttlaGroupLagGrows",
            "warning",
            f"{now} > {pace.seconds(5 * MINUTE)} and {now} > {before}",
            pace.time(5 * MINUTE),
            "group {{ $labels.group }} is {{ $value | humanizeDuration }} behind, and falls further behind",
            "The oldest record that the group has not read has been there for so long, and for longer than ten minutes "
            "ago: its consumers have stopped, or are slower than the producers.",
            "`ottla group explain {{ $labels.group }}` tells which, and since when.",
            "a group stops reading",
        ),
        Alert(
            "OttlaTransactionOpen",
            "warning",
            f"{highest(NODES.of(coordinators.OLDEST_TRANSACTION), 'instance')} > {pace.seconds(5 * MINUTE)}",
            "0s",
            f"a transaction has been open for {{{{ $value | humanizeDuration }}}}; its coordinator is {AT_NODE}",
            "Consumers with read_committed get no record behind it, compaction and DeleteRecords wait for it.",
            "`ottla txn list --running 5m` names it, and `ottla txn describe` tells its producer and partitions. "
            "`ottla txn abort` ends one whose producer is gone.",
            "a transaction is begun and not ended",
        ),
    )


def _process(pace: Pace) -> tuple[Alert, ...]:
    return (
        Alert(
            "OttlaFileDescriptors",
            "warning",
            f"{NODES.of(process.OPEN_FILES)} / {NODES.of(process.MAX_FILES)} > 0.8",
            pace.time(5 * MINUTE),
            f"{AT_NODE} uses {{{{ $value | humanizePercentage }}}} of its file descriptors",
            "The node keeps some for itself and refuses connections before the rest is used up.",
            "Raise the limit (LimitNOFILE= of its service, `ulimit -n`) and restart the node; look for clients that "
            "connect again and again.",
            "connections are opened until the node has no descriptors left for more",
        ),
    )
