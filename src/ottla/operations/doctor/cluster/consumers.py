"""Checks of groups, transactions, dead letters, contracts and the schema registry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ottla.model.topic_settings import (
    CLEANUP_POLICY,
    OTTLA_SCHEMA_VALIDATION,
    OTTLA_SCHEMA_VALIDATION_DLQ,
    OTTLA_SCHEMA_VALIDATION_OF,
    OTTLA_SCHEMA_VALIDATION_SUBJECT,
    RETENTION_MS,
)
from ottla.operations.dead_letter_topics import is_named_for_letters
from ottla.operations.doctor.check import HealthLevel, Symptom, UnseenError, some
from ottla.operations.doctor.cluster.cluster_seen import CLUSTER, ClusterSeen, GroupLag

_WAITED_LONG_S = 3600
_LAG_WORTH_A_LOOK = 1000
_GROWN_SHARE = 0.01
_NEAR_RETENTION = 0.8
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
_EMPTY = "Empty"
_LSO_RECORDS = 10_000
_LSO_MS = 60_000


def _by_group(lags: list[GroupLag]) -> dict[str, list[GroupLag]]:
    found = defaultdict(list)
    for each in lags:
        found[each.group].append(each)
    return dict(sorted(found.items()))


@CLUSTER.check(
    "lag-old",
    "A group leaves records unread for over an hour",
    why="Whoever relies on its results works with old data.",
    do="`ottla group explain NAME` tells since when and why; start its consumers, or add some",
)
def lag_old(cluster: ClusterSeen) -> Iterator[Symptom]:
    for group, lags in _by_group(cluster.lags.get()).items():
        old = [each for each in lags if (each.waited_s or 0) > _WAITED_LONG_S]
        if old:
            hours = max(each.waited_s or 0 for each in old) / 3600
            records = sum(each.records for each in old)
            yield Symptom(
                f"group {group}: {records} records in {some(each.partition for each in old)}, {hours:.1f} hours"
            )


@CLUSTER.check(
    "lag-growing",
    "A group falls behind",
    why="It reads more slowly than producers write, and will never catch up like this.",
    do="`ottla group explain NAME` tells why; more consumers (up to the number of partitions), or faster ones",
)
def lag_growing(cluster: ClusterSeen) -> Iterator[Symptom]:
    for group, lags in _by_group(cluster.lags.get()).items():
        seen_again = [each for each in lags if each.later is not None]
        before, later = sum(each.records for each in seen_again), sum(each.later or 0 for each in seen_again)
        if later >= _LAG_WORTH_A_LOOK and later - before > _GROWN_SHARE * before:
            yield Symptom(f"group {group} was {before} records behind, and a moment later {later}")


@CLUSTER.check(
    "lag-near-retention",
    "Records are deleted before a group has read them",
    why="Retention does not wait for readers.",
    do="start or speed up its consumers (`ottla group explain NAME` tells why they are behind); meanwhile `ottla topic "
    "alter NAME retention.ms=…` keeps records for longer",
    level=HealthLevel.PROBLEM,
)
def lag_near_retention(cluster: ClusterSeen) -> Iterator[Symptom]:
    bounds = cluster.bounds.get()
    for each in cluster.lags.get():
        start = bounds[each.partition].start
        if each.committed < start:
            yield Symptom(f"group {each.group}: {start - each.committed} records of {each.partition} are gone unread")
        elif each.waited_s is not None and "delete" in cluster.setting(each.partition.topic, CLEANUP_POLICY.name):
            retention_s = int(cluster.setting(each.partition.topic, RETENTION_MS.name)) / 1000
            if 0 < _NEAR_RETENTION * retention_s < each.waited_s:
                yield Symptom(
                    f"group {each.group}: the first unread record of {each.partition} is {each.waited_s:.0f} s old, "
                    f"and retention.ms is {retention_s:.0f} s"
                )


@CLUSTER.check(
    "group-abandoned",
    "A group without members has unread records",
    why="Its consumers have stopped. After offsets.retention.minutes without members its offsets are deleted, and it "
    "would start anew.",
    do="start its consumers; if nobody needs the group, `ottla group delete NAME`",
)
def group_abandoned(cluster: ClusterSeen) -> Iterator[Symptom]:
    empty = {each.group_id for each in cluster.groups.get() if each.state == _EMPTY}
    for group, lags in _by_group(cluster.lags.get()).items():
        records = sum(each.records for each in lags)
        if group in empty and records:
            yield Symptom(f"group {group}: {records} records in {some(each.partition for each in lags)}")


@CLUSTER.check(
    "group-rebalancing",
    "A group that does not come out of its rebalance",
    why="Its members read nothing meanwhile.",
    do="`ottla group explain NAME` tells who joined, left or timed out, and which setting to change; a member that "
    "does not answer holds up the others until its max.poll.interval.ms is over",
)
def group_rebalancing(cluster: ClusterSeen) -> Iterator[Symptom]:
    before = {each.group_id for each in cluster.groups.get() if each.state in _REBALANCING}
    for each in cluster.groups_later.get():
        if each.group_id in before and each.state in _REBALANCING:
            yield Symptom(f"group {each.group_id} was in {each.state} each time")


@CLUSTER.check(
    "transaction-hanging",
    "An open transaction that no coordinator knows",
    why="Nobody will ever end it: readers of committed records wait behind it for ever, and compaction stops there.",
    do="`ottla txn abort --partition TOPIC:PARTITION --start-offset OFFSET`",
    level=HealthLevel.PROBLEM,
)
def transaction_hanging(cluster: ClusterSeen) -> Iterator[Symptom]:
    listed = [*cluster.transactions.get(), *cluster.transactions_later.get()]
    known = {(each.producer_id, at) for each in listed for at in each.partitions}
    later = {
        (at, each.producer_id, each.current_txn_start_offset)
        for at, producers in cluster.producers_later.get().items()
        for each in producers
    }
    for at, producers in cluster.producers.get().items():
        for each in producers:
            offset = each.current_txn_start_offset
            if offset >= 0 and (each.producer_id, at) not in known and (at, each.producer_id, offset) in later:
                do = f"`ottla txn abort --partition {at.topic}:{at.partition} --start-offset {offset}`"
                yield Symptom(f"{at} at offset {offset}, of producer {each.producer_id}", do=do)


@CLUSTER.check(
    "stable-offset-held",
    "An open transaction holds up readers of committed records",
    why="They see nothing behind its first record until it ends.",
    do="`ottla txn list` and `ottla txn describe ID` show whose it is; `ottla txn abort ID` ends it",
)
def stable_offset_held(cluster: ClusterSeen) -> Iterator[Symptom]:
    stable = cluster.stable_ends.get()
    begun = {at: each for each in cluster.transactions.get() for at in each.partitions}
    for at, bounds in cluster.bounds.get().items():
        held = bounds.end - stable.get(at, bounds.end)
        owner = begun.get(at)
        open_ms = cluster.now_ms - owner.started_ms if owner is not None and owner.started_ms is not None else 0
        if held > 0 and (held > _LSO_RECORDS or open_ms > _LSO_MS):
            whose = f" by {owner.transactional_id}, open for {open_ms // 1000} s" if owner is not None else ""
            yield Symptom(f"{at}: {held} records{whose}")


@CLUSTER.check(
    "dead-letters",
    "Records that were given up",
    why="A share group, a contract or a Spark reader could not take them, and they wait for somebody to look.",
    do="`ottla dlq list TOPIC` shows them with the reason, `ottla dlq redrive TOPIC --all` sends them back, and with "
    "`--dry-run` only counts them",
)
def dead_letters(cluster: ClusterSeen) -> Iterator[Symptom]:
    counts: dict[str, int] = defaultdict(int)
    named = {each.get(OTTLA_SCHEMA_VALIDATION_DLQ.name) for each in cluster.topic_settings.get().values()}
    named.update(cluster.share_letters.get())
    for at, bounds in cluster.bounds.get().items():
        if is_named_for_letters(at.topic) or at.topic in named:
            counts[at.topic] += bounds.end - bounds.start
    for topic, count in sorted(counts.items()):
        if count:
            do = f"`ottla dlq list {topic}`, then `ottla dlq redrive {topic} --all --dry-run`"
            yield Symptom(f"{topic} holds {'1 letter' if count == 1 else f'{count} letters'}", do=do)


@CLUSTER.check(
    "contract-refuses-all",
    "A contract that no record can meet",
    why="The topic asks for registered schemas, and none is registered for it: every record is refused, dead-lettered "
    "or tagged.",
    do="`ottla schema register TOPIC-value FILE`; until then `ottla config set topic T ottla.schema.validation=none`",
    level=HealthLevel.PROBLEM,
)
def contract_refuses_all(cluster: ClusterSeen) -> Iterator[Symptom]:
    settings = cluster.topic_settings.get()
    wanted = []
    for topic, values in settings.items():
        if values.get(OTTLA_SCHEMA_VALIDATION.name, "none") != "none":
            of = values.get(OTTLA_SCHEMA_VALIDATION_OF.name, "value")
            if values.get(OTTLA_SCHEMA_VALIDATION_SUBJECT.name, "topic") == "topic":
                wanted += [(topic, f"{topic}-{each}") for each in ("key", "value") if of in (each, "both")]
    if wanted:
        subjects = cluster.subjects.get()
        for topic, subject in wanted:
            if subject not in subjects:
                yield Symptom(f"{topic}: there is no subject {subject}", do=f"`ottla schema register {subject} FILE`")


@CLUSTER.check(
    "registry-unreachable",
    "The schema registry does not answer",
    why="Clients cannot look up schemas: they read and write only what they have in memory.",
    do="start it: `ottla registry`; `--registry URL` (or OTTLA_REGISTRY) says where it is",
    level=HealthLevel.PROBLEM,
)
def registry_unreachable(cluster: ClusterSeen) -> Iterator[Symptom]:
    if cluster.subjects.value is None:
        if not cluster.has_registry:
            raise UnseenError(cluster.subjects.reason)
        yield Symptom(cluster.subjects.reason)
