"""Checks of partitions, their replicas and leaders, and of moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ottla.client.metadata import NO_LEADER, PartitionInfo, replicas_behind
from ottla.model.ids import TopicPartition
from ottla.model.topic_settings import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE
from ottla.operations.doctor.check import HealthLevel, Symptom, UnseenError, some
from ottla.operations.doctor.cluster.cluster_seen import CLUSTER, ClusterSeen

_UNBALANCED_SHARE = 0.1
_PARTITIONS_MANY = 10_000
_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state", "_schemas")
_MIN_ISR = MIN_INSYNC_REPLICAS.name


@CLUSTER.check(
    "partition-offline",
    "Partitions without a leader",
    why="They can be neither written nor read.",
    do="start the brokers that hold them (`ottla topic describe NAME`); if they are lost, and records with them, "
    "`ottla cluster elect --unclean TOPIC:PARTITION`",
    level=HealthLevel.PROBLEM,
)
def partition_offline(cluster: ClusterSeen) -> Iterator[Symptom]:
    offline = [at for at, each in cluster.partitions() if each.leader == NO_LEADER]
    if offline:
        yield Symptom(f"{len(offline)} partitions: {some(offline)}")


@CLUSTER.check(
    "under-replicated",
    "Partitions with replicas that are not in sync",
    why="If the rest fails, too, they are offline, or records are lost. It is so for a while after a restart.",
    do="`ottla cluster status` shows brokers that are away; if none is, disk or network of the replicas is too slow",
)
def under_replicated(cluster: ClusterSeen) -> Iterator[Symptom]:
    adding = {each.partition: each.adding for each in cluster.moves.value or ()}
    behind = [at for at, each in cluster.partitions() if replicas_behind(each.replicas, each.isr, adding.get(at, ()))]
    if behind:
        yield Symptom(f"{len(behind)} partitions: {some(behind)}")


@CLUSTER.check(
    "under-min-isr",
    "Partitions with fewer replicas in sync than they ask for",
    why="Producers with acks=all get NOT_ENOUGH_REPLICAS.",
    do="start the brokers that are away; for the time being `ottla topic alter NAME min.insync.replicas=1`",
    level=HealthLevel.PROBLEM,
)
def under_min_isr(cluster: ClusterSeen) -> Iterator[Symptom]:
    short = [at for at, each in cluster.partitions() if len(each.isr) < int(cluster.setting(at.topic, _MIN_ISR))]
    if short:
        yield Symptom(f"{len(short)} partitions: {some(short)}")


def _factors(cluster: ClusterSeen) -> dict[str, int]:
    """The smallest number of replicas of each topic."""
    return {
        each.name: min(len(partition.replicas) for partition in each.partitions)
        for each in cluster.topics.get()
        if each.partitions
    }


@CLUSTER.check(
    "replica-single",
    "Topics with one replica in a cluster of several brokers",
    why="When the broker with the only replica is down, its partitions are; when its disk is lost, its records are.",
    do="`ottla cluster reassign TOPIC:PARTITION=1,2,3 --execute`",
)
def replica_single(cluster: ClusterSeen) -> Iterator[Symptom]:
    if len(cluster.brokers) > 1:
        single = [topic for topic, count in _factors(cluster).items() if count == 1 and topic not in _INTERNAL]
        if single:
            yield Symptom(f"{len(single)} topics: {some(single)}")


@CLUSTER.check(
    "internal-replica-single",
    "Internal topics with one replica in a cluster of several brokers",
    why="When that broker is down, groups do not rebalance and commit nothing, or transactions stand still; when its "
    "disk is lost, all offsets are.",
    do="`ottla cluster reassign __consumer_offsets:0=1,2,3 --execute` for each partition; "
    "offsets.topic.replication.factor=3 counts only before the topic exists",
    level=HealthLevel.PROBLEM,
)
def internal_replica_single(cluster: ClusterSeen) -> Iterator[Symptom]:
    if len(cluster.brokers) > 1:
        factors = _factors(cluster)
        single = [each for each in _INTERNAL if factors.get(each) == 1]
        if single:
            yield Symptom(some(single))


@CLUSTER.check(
    "replica-none-to-spare",
    "Topics that need all their replicas in sync",
    why="As soon as one broker is down, also for a restart, producers with acks=all are refused.",
    do="`ottla topic alter NAME min.insync.replicas=2` with three replicas",
)
def replica_none_to_spare(cluster: ClusterSeen) -> Iterator[Symptom]:
    tight = [topic for topic, count in _factors(cluster).items() if 1 < count <= int(cluster.setting(topic, _MIN_ISR))]
    if tight:
        yield Symptom(f"{len(tight)} topics: {some(tight)}")


@CLUSTER.check(
    "min-isr-one",
    "Topics whose records may be acknowledged by one replica of three",
    why="acks=all then means: all that are in sync, be it one. If that one is lost, so are acknowledged records.",
    do="`ottla topic alter NAME min.insync.replicas=2`",
)
def min_isr_one(cluster: ClusterSeen) -> Iterator[Symptom]:
    loose = [
        topic for topic, count in _factors(cluster).items() if count > 2 and cluster.setting(topic, _MIN_ISR) == "1"
    ]
    if loose:
        yield Symptom(f"{len(loose)} topics: {some(loose)}")


@CLUSTER.check(
    "unclean-election",
    "Topics that may elect a leader without all records",
    why="When all replicas in sync are gone, one without the last acknowledged records leads, and they are lost.",
    do="`ottla topic alter NAME unclean.leader.election.enable=false`",
)
def unclean_election(cluster: ClusterSeen) -> Iterator[Symptom]:
    name = UNCLEAN_LEADER_ELECTION_ENABLE.name
    risky = [
        topic for topic, count in _factors(cluster).items() if count > 1 and cluster.setting(topic, name) == "true"
    ]
    if risky:
        yield Symptom(f"{len(risky)} topics: {some(risky)}")


@CLUSTER.check(
    "replicas-one-rack",
    "Partitions with all replicas in one rack",
    why="When the rack fails, the partition does.",
    do="`ottla cluster balance --execute` spreads replicas over racks",
)
def replicas_one_rack(cluster: ClusterSeen) -> Iterator[Symptom]:
    racks = {each.node_id: each.rack for each in cluster.brokers}
    if len(set(racks.values()) - {None}) > 1:
        close = [
            at
            for at, each in cluster.partitions()
            if len(each.replicas) > 1 and len({racks.get(replica) for replica in each.replicas}) == 1
        ]
        if close:
            yield Symptom(f"{len(close)} partitions: {some(close)}")


@CLUSTER.check(
    "leaders-unbalanced",
    "Leaders that are not where they should be",
    why="Some brokers do the work of others: after a restart leaders come back by themselves only with "
    "auto.leader.rebalance.enable.",
    do="`ottla cluster elect`",
)
def leaders_unbalanced(cluster: ClusterSeen) -> Iterator[Symptom]:
    replicated = [(at, each) for at, each in cluster.partitions() if len(each.replicas) > 1]
    away = [at for at, each in replicated if _is_led_by_other(each)]
    if len(away) > _UNBALANCED_SHARE * len(replicated):
        yield Symptom(f"{len(away)} of {len(replicated)} partitions: {some(away)}")


def _is_led_by_other(partition: PartitionInfo) -> bool:
    preferred = partition.replicas[0]
    return partition.leader not in (preferred, NO_LEADER) and preferred in partition.isr


@CLUSTER.check(
    "partitions-many",
    "Very many partitions on one broker",
    why="Each costs memory and descriptors, and a broker that starts, stops or fails takes as much longer.",
    do="`ottla cluster add-broker`, then `ottla cluster balance --execute`; or fewer partitions for small topics",
)
def partitions_many(cluster: ClusterSeen) -> Iterator[Symptom]:
    counts = Counter(replica for _, each in cluster.partitions() for replica in each.replicas)
    for node_id, count in sorted(counts.items()):
        if count > _PARTITIONS_MANY:
            yield Symptom(f"broker {node_id} holds {count} replicas")


@CLUSTER.check(
    "move-stuck",
    "A move of a partition that makes no progress",
    why="The partition has more replicas than it should, and a throttle may slow down others for it.",
    do="start the broker that it moves to; `ottla cluster reassign --cancel TOPIC:PARTITION` gives up; a throttle that "
    "is too low is raised by `ottla cluster reassign --throttle`",
)
def move_stuck(cluster: ClusterSeen) -> Iterator[Symptom]:
    still = {each.partition for each in cluster.moves_later.get()}
    gone = {each.node_id for each in cluster.brokers if each.is_fenced} | set(cluster.unreachable)
    for move in cluster.moves.get():
        if move.partition not in still:
            continue
        missing = sorted(gone.intersection(move.adding))
        if missing:
            yield Symptom(f"{move.partition} moves to broker {some(missing)}, which is away", HealthLevel.PROBLEM)
        elif move.adding and _sizes(cluster, move.partition, move.adding) == _sizes(
            cluster, move.partition, move.adding, is_later=True
        ):
            yield Symptom(f"{move.partition} moves to broker {some(move.adding)}, and nothing was copied meanwhile")


def _sizes(cluster: ClusterSeen, at: TopicPartition, node_ids: tuple[int, ...], *, is_later: bool = False) -> list[int]:
    disks = (cluster.disks_later if is_later else cluster.disks).get()
    return [
        replica.size_bytes
        for node_id in node_ids
        for directory in disks.get(node_id, ())
        for replica in directory.replicas
        if (replica.topic, replica.partition) == at
    ]


@CLUSTER.check(
    "throttle-left",
    "A throttle of replication although nothing moves",
    why="Replicas that fall behind, after a restart for example, catch up only at its rate.",
    do="`ottla cluster reassign --unthrottle`; for those of others `ottla config set … --unset`",
)
def throttle_left(cluster: ClusterSeen) -> Iterator[Symptom]:
    if cluster.moves.get():
        raise UnseenError("partitions are moving, and a throttle may belong to that")
    found = cluster.throttles.get()
    throttled = [*(f"topic {each}" for each in found.topics), *(f"broker {each}" for each in found.brokers)]
    throttled += [str(each) for each in found.others]
    if throttled:
        yield Symptom(some(throttled))
