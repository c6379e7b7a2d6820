"""Checks of brokers and of the metadata quorum."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.model.setting import Setting
from ottla.model.settings.groups import OFFSETS_RETENTION_MINUTES
from ottla.model.settings.log import LOG_SEGMENT_BYTES
from ottla.model.settings.network import SOCKET_REQUEST_MAX_BYTES
from ottla.model.settings.node import AUTO_CREATE_TOPICS_ENABLE, DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from ottla.model.settings.replication import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE
from ottla.model.topic_settings import MAX_MESSAGE_BYTES, RETENTION_BYTES, RETENTION_MS
from ottla.operations.doctor.check import HealthLevel, Symptom, UnseenError, some
from ottla.operations.doctor.cluster.cluster_seen import CLUSTER, ClusterSeen
from ottla.operations.doctor.thresholds import CLOCK_OFF_S

_VOTER_BEHIND_MS = 10_000
_CLOCK_OFF_MS = 5_000
# Settings of brokers, and defaults of topics, that mean a surprise where nodes differ in them.
_SAME: tuple[Setting[object], ...] = (
    AUTO_CREATE_TOPICS_ENABLE,
    DEFAULT_REPLICATION_FACTOR,
    NUM_PARTITIONS,
    MIN_INSYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
    OFFSETS_RETENTION_MINUTES,
    LOG_SEGMENT_BYTES,
    SOCKET_REQUEST_MAX_BYTES,
)
_SAME_DEFAULTS: tuple[Setting[object], ...] = (RETENTION_MS, RETENTION_BYTES, MAX_MESSAGE_BYTES)


@CLUSTER.check(
    "broker-unreachable",
    "A broker does not answer at the address that it advertises",
    why="Clients connect to the advertised address, whatever address they were given first: they cannot use what this "
    "broker leads.",
    do="start the broker; if it runs, set advertised.listeners to an address that clients reach (from here: no)",
    level=HealthLevel.PROBLEM,
)
def broker_unreachable(cluster: ClusterSeen) -> Iterator[Symptom]:
    for each in cluster.present:
        if each.node_id in cluster.unreachable:
            yield Symptom(f"broker {each.node_id} at {each.address}: {cluster.unreachable[each.node_id]}")


@CLUSTER.check(
    "broker-fenced",
    "A broker is registered and away",
    why="It leads nothing and replicates nothing; the others carry its load with one replica less.",
    do="start it; if it will not come back, `ottla cluster remove-broker ID`",
    level=HealthLevel.PROBLEM,
)
def broker_fenced(cluster: ClusterSeen) -> Iterator[Symptom]:
    for each in cluster.brokers:
        if each.is_fenced:
            yield Symptom(f"broker {each.node_id} at {each.address} is fenced")


@CLUSTER.check(
    "controller-missing",
    "No controller leads",
    why="No leader can be elected and nothing be created or changed; a broker that fails now stays without successor.",
    do="start the controllers that are down; `ottla cluster quorum -b` with the address of a controller says more",
    level=HealthLevel.PROBLEM,
)
def controller_missing(cluster: ClusterSeen) -> Iterator[Symptom]:
    if cluster.quorum.value is None:
        if cluster.quorum.is_refused:
            raise UnseenError(cluster.quorum.reason)
        yield Symptom(cluster.quorum.reason)


@CLUSTER.check(
    "voter-behind",
    "A voter of the metadata quorum does not follow",
    why="It counts as a voter and cannot vote for what it does not have: one failure more may leave no majority.",
    do="start it, or look at its log; `ottla cluster quorum` shows how far it is",
    level=HealthLevel.PROBLEM,
)
def voter_behind(cluster: ClusterSeen) -> Iterator[Symptom]:
    quorum = cluster.quorum.get()
    leader = next((each for each in quorum.voters if each.node_id == quorum.leader_id), None)
    for each in quorum.voters:
        if leader is None or each is leader:
            continue
        behind_ms = leader.last_caught_up_timestamp - each.last_caught_up_timestamp
        if each.log_end_offset < leader.log_end_offset and behind_ms > _VOTER_BEHIND_MS:
            since = f"for {behind_ms // 1000} s" if each.last_caught_up_timestamp > 0 else "since the leader leads"
            records = leader.log_end_offset - max(each.log_end_offset, 0)
            yield Symptom(f"voter {each.node_id} has not caught up {since}: it lacks {records} records")


@CLUSTER.check(
    "voters-even",
    "The voters of the metadata quorum are an even number",
    why="Four voters tolerate no more failures than three, and two none at all: one node more that can fail.",
    do="`ottla cluster add-voter ID` or `ottla cluster remove-voter ID`, to three or five",
)
def voters_even(cluster: ClusterSeen) -> Iterator[Symptom]:
    voters = cluster.quorum.get().voters
    if voters and len(voters) % 2 == 0:
        yield Symptom(f"there are {len(voters)} voters: {some(each.node_id for each in voters)}")


@CLUSTER.check(
    "voter-single",
    "Several brokers and one controller",
    why="When this node is down nothing can be changed and no leader elected; when its disk is lost, the cluster is.",
    do="three controllers (docs/quorum.md); `ottla cluster add-voter ID` in a quorum that may change",
)
def voter_single(cluster: ClusterSeen) -> Iterator[Symptom]:
    voters = cluster.quorum.get().voters
    if len(voters) == 1 and len(cluster.brokers) > 1:
        yield Symptom(f"node {voters[0].node_id} is the only voter of {len(cluster.brokers)} brokers")


@CLUSTER.check(
    "versions-mixed",
    "Brokers of different versions",
    why="Fine during a rolling upgrade; afterwards one node was forgotten, and new features stay off.",
    do="upgrade the rest; `ottla api -b` shows what each broker serves",
)
def versions_mixed(cluster: ClusterSeen) -> Iterator[Symptom]:
    versions = cluster.versions.get()
    kinds = {tuple(sorted(each.items())): node_id for node_id, each in versions.items()}
    if len(kinds) > 1:
        yield Symptom(f"brokers {some(sorted(kinds.values()))} serve different versions of APIs")


@CLUSTER.check(
    "features-behind",
    "The cluster does not use the features that all its brokers have",
    why="After an upgrade of all nodes the last step is missing: what the new version brings stays off.",
    do="`ottla cluster features metadata.version=LEVEL`",
)
def features_behind(cluster: ClusterSeen) -> Iterator[Symptom]:
    by_broker = cluster.features.get()
    highest: dict[str, int] = {}
    for feature in (each for features in by_broker.values() for each in features):
        highest[feature.name] = min(feature.max_version, highest.get(feature.name, feature.max_version))
    for feature in next(iter(by_broker.values()), []):
        if feature.name == "metadata.version" and (feature.finalized or 0) < highest[feature.name]:
            yield Symptom(
                f"{feature.name} is at level {feature.finalized}, and every broker can {highest[feature.name]}",
                do=f"`ottla cluster features {feature.name}={highest[feature.name]}`",
            )


@CLUSTER.check(
    "clock-off",
    "The controller's clock and this machine's differ",
    why="Timestamps that clients here write are wrong there, or the other way round: retention, lag in seconds and "
    "expiry of offsets are off by as much.",
    do="timedatectl on both machines; switch NTP on",
)
def clock_off(cluster: ClusterSeen) -> Iterator[Symptom]:
    quorum = cluster.quorum.get()
    told = [each.last_caught_up_timestamp for each in quorum.voters if each.node_id == quorum.leader_id]
    if not told or told[0] <= 0:
        raise UnseenError("the controller does not tell its time")
    off_ms = told[0] - min(max(told[0], cluster.asked_ms), cluster.now_ms)
    if abs(off_ms) > _CLOCK_OFF_MS:
        sign = "ahead of" if off_ms > 0 else "behind"
        yield Symptom(f"node {quorum.leader_id} is {abs(off_ms) / 1000:.0f} s {sign} this machine")


@CLUSTER.check(
    "settings-differ",
    "Brokers that differ in settings that should be the same",
    why="What a topic or a group gets depends on the broker that happens to lead it.",
    do="`ottla config set broker default NAME=VALUE` for all, `ottla config set broker ID --unset NAME` for one",
)
def settings_differ(cluster: ClusterSeen) -> Iterator[Symptom]:
    nodes = {node_id: each.node for node_id, each in cluster.settings.get().items()}
    found = {each.name: {node_id: node.broker[each] for node_id, node in nodes.items()} for each in _SAME}
    found |= {
        each.name: {node_id: node.topic_defaults[each] for node_id, node in nodes.items()} for each in _SAME_DEFAULTS
    }
    for name, values in found.items():
        if len(set(values.values())) > 1:
            yield Symptom(f"{name} is {', '.join(f'{value} on {node_id}' for node_id, value in values.items())}")


@CLUSTER.check(
    "record-times-future",
    "Records from the future",
    why="Retention by time keeps a segment until its newest record is old enough: these segments stay too long, and "
    "searches by time miss what comes after.",
    do="correct the producer's clock; message.timestamp.after.max.ms=3600000 refuses such records, "
    "`ottla topic delete-records` removes them",
)
def record_times_future(cluster: ClusterSeen) -> Iterator[Symptom]:
    limit_ms = cluster.now_ms + CLOCK_OFF_S * 1000
    late = {at: each for at, each in cluster.last_times.get().items() if each > limit_ms}
    if late:
        hours = (max(late.values()) - cluster.now_ms) / 3_600_000
        yield Symptom(f"{some(late)}: up to {hours:.0f} hours from now")
