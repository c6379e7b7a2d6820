"""Checks of the brokers' disks and of what topics keep on them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ottla.model.errors import ErrorCode
from ottla.model.limits import MIB
from ottla.model.settings.log import LOG_DIRS
from ottla.model.topic_settings import CLEANUP_POLICY, RETENTION_MS, SEGMENT_MS
from ottla.operations.doctor.check import HealthLevel, Symptom, UnseenError
from ottla.operations.doctor.cluster.cluster_seen import CLUSTER, ClusterSeen
from ottla.operations.doctor.thresholds import room_symptom
from ottla.operations.formats import size_text
from ottla.server.settings.configs import Configs

_SKEW_BYTES, _SKEW_TIMES = 64 * MIB, 2
_SEGMENTS_MANY = 1000
_SCHEMAS = "_schemas"
_FOREVER_MS = 10 * 365 * 24 * 3_600_000


@CLUSTER.check(
    "directory-offline",
    "A data directory of a broker does not work",
    why="Its replicas answer KAFKA_STORAGE_ERROR, and others carry them.",
    do="replace the disk and restart the broker; its log says what the disk answered",
    level=HealthLevel.PROBLEM,
)
def directory_offline(cluster: ClusterSeen) -> Iterator[Symptom]:
    for node_id, directories in cluster.disks.get().items():
        for each in directories:
            if each.error != ErrorCode.NONE:
                yield Symptom(f"{each.path} of broker {node_id}: {each.error.name}")
        settings = (cluster.settings.value or {}).get(node_id)
        known = {os.path.abspath(each.path) for each in directories}
        is_told = settings is not None and LOG_DIRS.name in settings.values
        for path in Configs(settings.values).log_dirs() if settings is not None and is_told else ():
            if os.path.isabs(path) and os.path.abspath(path) not in known:
                yield Symptom(f"{path} of broker {node_id} could not be used when it started")


@CLUSTER.check(
    "broker-disk-full",
    "A disk of a broker is full, or nearly",
    why="A full disk refuses records, and what is led there stops.",
    do="`ottla topic alter NAME retention.ms=…`, or `ottla cluster balance --execute` to brokers with more room",
)
def broker_disk_full(cluster: ClusterSeen) -> Iterator[Symptom]:
    known = [
        (node_id, each)
        for node_id, directories in cluster.disks.get().items()
        for each in directories
        if each.total_bytes > 0
    ]
    if not known:
        raise UnseenError("the brokers do not tell the size of their disks")
    for node_id, each in known:
        yield from room_symptom(f"{each.path} of broker {node_id}", each.usable_bytes, each.total_bytes)


@CLUSTER.check(
    "disk-skew",
    "Data is spread unevenly over the brokers",
    why="The fullest disk decides when the cluster is full, and its broker does most of the work.",
    do="`ottla cluster balance --execute`",
)
def disk_skew(cluster: ClusterSeen) -> Iterator[Symptom]:
    sizes = {
        node_id: sum(replica.size_bytes for each in directories for replica in each.replicas)
        for node_id, directories in cluster.disks.get().items()
    }
    if len(sizes) > 1:
        most, least = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
        if sizes[most] > _SKEW_TIMES * sizes[least] and sizes[most] - sizes[least] > _SKEW_BYTES:
            yield Symptom(f"broker {most} holds {size_text(sizes[most])}, broker {least} {size_text(sizes[least])}")


@CLUSTER.check(
    "segments-short",
    "Topics that begin segments too often",
    why="Each segment has three files: starts, searches and retention take longer, and descriptors are used up.",
    do="`ottla topic alter NAME segment.ms=86400000`",
)
def segments_short(cluster: ClusterSeen) -> Iterator[Symptom]:
    for topic in cluster.topics.get():
        retention_ms = int(cluster.setting(topic.name, RETENTION_MS.name))
        segment_ms = int(cluster.setting(topic.name, SEGMENT_MS.name))
        is_deleted = "delete" in cluster.setting(topic.name, CLEANUP_POLICY.name)
        if is_deleted and 0 < retention_ms < _FOREVER_MS and retention_ms > _SEGMENTS_MANY * segment_ms:
            yield Symptom(f"{topic.name}: up to {retention_ms // segment_ms} segments for each partition")


@CLUSTER.check(
    "schemas-not-compact",
    "The topic of the schema registry is not compacted",
    why="Retention deletes schemas, and records that were written with them cannot be read any more.",
    do=f"`ottla topic alter {_SCHEMAS} cleanup.policy=compact`",
    level=HealthLevel.PROBLEM,
)
def schemas_not_compact(cluster: ClusterSeen) -> Iterator[Symptom]:
    if any(each.name == _SCHEMAS for each in cluster.topics.get()):
        policy = cluster.setting(_SCHEMAS, CLEANUP_POLICY.name)
        if policy != "compact":
            yield Symptom(f"{_SCHEMAS} has cleanup.policy={policy}")
