"""Checks of settings that are made for a file and for each broker of a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from ottla.model.settings.cleaner import LOG_CLEANER_ENABLE
from ottla.model.settings.groups import OFFSETS_RETENTION_MINUTES, OFFSETS_TOPIC_REPLICATION_FACTOR
from ottla.model.settings.node import AUTO_CREATE_TOPICS_ENABLE, DEFAULT_REPLICATION_FACTOR
from ottla.model.settings.replication import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE
from ottla.model.settings.share import SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR
from ottla.model.settings.transactions import TRANSACTION_STATE_LOG_REPLICATION_FACTOR
from ottla.model.topic_settings import RETENTION_MS
from ottla.operations.doctor.check import HealthLevel, Symptom
from ottla.operations.doctor.settings.node_settings import SETTINGS, SettingsSeen
from ottla.operations.security.findings import (
    AuditFinding,
    AuditSeverity,
    authorizer_findings,
    certificate_findings,
    listener_findings,
)

_LEVELS = {AuditSeverity.HIGH: HealthLevel.PROBLEM, AuditSeverity.MEDIUM: HealthLevel.WARNING}
_FACTORS = (
    DEFAULT_REPLICATION_FACTOR,
    OFFSETS_TOPIC_REPLICATION_FACTOR,
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
    SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR,
)
_MINUTE_MS = 60_000
_WHERE = "settings"


def _as_symptom(finding: AuditFinding) -> Symptom:
    return Symptom(finding.what.removeprefix(f"{_WHERE}: "), _LEVELS[finding.severity], finding.why, finding.fix)


@SETTINGS.check(
    "listener-open",
    "A listener beyond loopback without login or encryption",
    why="Whoever reaches it gets in, or reads along.",
    do="`ottla security audit` lists all that is open; docs/security.md says how to close it",
    level=HealthLevel.PROBLEM,
)
def listener_open(settings: SettingsSeen) -> Iterator[Symptom]:
    for each in listener_findings(_WHERE, settings.node, settings.hidden):
        if each.severity in _LEVELS:
            yield _as_symptom(each)


@SETTINGS.check(
    "access-open",
    "No access control, or a way around it",
    why="Every client that gets in may read, write and delete everything.",
    do="`ottla security audit` lists what is open; docs/security.md says how to close it",
    level=HealthLevel.PROBLEM,
)
def access_open(settings: SettingsSeen) -> Iterator[Symptom]:
    for each in authorizer_findings(_WHERE, settings.node):
        if each.severity is AuditSeverity.HIGH:  # on loopback alone, doing without is only MEDIUM
            yield _as_symptom(each)


@SETTINGS.check(
    "certificate-expiring",
    "The certificate of a listener has expired or soon will",
    why="From that moment on clients and other nodes cannot connect.",
    do="`ottla tls issue NAME --host HOST --client --force`, or a new one from your authority",
)
def certificate_expiring(settings: SettingsSeen) -> Iterator[Symptom]:
    for place, facts in settings.certificates:
        yield from map(_as_symptom, certificate_findings(place, [facts], datetime.now(UTC)))
    for place in settings.unreadable:
        yield Symptom(f"{place} holds no certificate that can be read, so its time is not known")


@SETTINGS.check(
    "auto-create",
    "Clients create topics by mistake",
    why="A misspelt name becomes a topic, with default partitions and replicas, and its records are missed elsewhere.",
    do="auto.create.topics.enable=false, and `ottla topic create` for the topics you want",
)
def auto_create(settings: SettingsSeen) -> Iterator[Symptom]:
    if settings.is_reachable and settings.broker[AUTO_CREATE_TOPICS_ENABLE]:
        yield Symptom("auto.create.topics.enable is true, and other machines reach the node")


@SETTINGS.check(
    "unclean-default",
    "Topics may elect leaders that lack records",
    why="When all replicas in sync are gone, one without the last acknowledged records leads, and they are lost.",
    do="`ottla config set broker default unclean.leader.election.enable=false`; in the file the same line",
)
def unclean_default(settings: SettingsSeen) -> Iterator[Symptom]:
    if settings.broker[UNCLEAN_LEADER_ELECTION_ENABLE]:
        yield Symptom("unclean.leader.election.enable is true for all topics")


@SETTINGS.check(
    "factor-one-default",
    "New topics have one replica although there are several brokers",
    why="When the broker with the only replica is down, its partitions are; when its disk is lost, its records are.",
    do="default.replication.factor=3 in the file of each node, the same for the factors of internal topics; "
    "`ottla cluster reassign` for topics that exist",
)
def factor_one_default(settings: SettingsSeen) -> Iterator[Symptom]:
    if settings.has_others:
        for each in _FACTORS:
            if settings.broker[each] == 1:
                do = f"{each.name}=3 in the file of each node; `ottla cluster reassign` for topics that exist"
                yield Symptom(f"{each.name} is 1, and there are other brokers", do=do)


@SETTINGS.check(
    "min-isr-unreachable",
    "New topics ask for more replicas in sync than they have",
    why="Producers with acks=all get NOT_ENOUGH_REPLICAS for every record of such a topic.",
    do="min.insync.replicas=2 with default.replication.factor=3",
    level=HealthLevel.PROBLEM,
)
def min_isr_unreachable(settings: SettingsSeen) -> Iterator[Symptom]:
    need, have = settings.broker[MIN_INSYNC_REPLICAS], settings.broker[DEFAULT_REPLICATION_FACTOR]
    if need > have:
        yield Symptom(f"min.insync.replicas is {need}, and default.replication.factor is {have}")


@SETTINGS.check(
    "compaction-off",
    "Compaction is switched off",
    why="Compacted topics, __consumer_offsets among them, grow for ever and take ever longer to load.",
    do="remove log.cleaner.enable=false from the file, and restart the node",
    level=HealthLevel.PROBLEM,
)
def compaction_off(settings: SettingsSeen) -> Iterator[Symptom]:
    if not settings.broker[LOG_CLEANER_ENABLE]:
        yield Symptom("log.cleaner.enable is false")


@SETTINGS.check(
    "offsets-expire-first",
    "Offsets of groups expire before the records do",
    why="A consumer that is away for longer starts at auto.offset.reset: it skips records that are still there, "
    "or reads all again.",
    do="offsets.retention.minutes at least as long as the longest retention.ms of your topics",
)
def offsets_expire_first(settings: SettingsSeen) -> Iterator[Symptom]:
    kept_ms = settings.broker[OFFSETS_RETENTION_MINUTES] * _MINUTE_MS
    retention_ms = settings.node.topic_defaults[RETENTION_MS]
    if retention_ms > kept_ms:
        yield Symptom(
            f"offsets are kept for {kept_ms // _MINUTE_MS} minutes without members, records for "
            f"{retention_ms // _MINUTE_MS}"
        )
