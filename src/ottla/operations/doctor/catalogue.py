"""All checks of `ottla doctor`. What imports a module below makes its checks known."""

from __future__ import annotations

from ottla.operations.doctor.cluster import brokers, consumers, disks, replicas
from ottla.operations.doctor.cluster.cluster_seen import CLUSTER
from ottla.operations.doctor.cluster.reach import REACH
from ottla.operations.doctor.data import disk, identity, logs
from ottla.operations.doctor.data.directory_seen import DATA
from ottla.operations.doctor.settings import everywhere, in_file
from ottla.operations.doctor.settings.node_settings import FILE, SETTINGS

_MODULES = (brokers, replicas, disks, consumers, everywhere, in_file, identity, disk, logs)
AREAS = (REACH, CLUSTER, SETTINGS, FILE, DATA)


def all_ids() -> list[str]:
    """The ids of all checks."""
    return [each.id for area in AREAS for each in area.all]


__all__ = ["AREAS", "CLUSTER", "DATA", "FILE", "REACH", "SETTINGS", "all_ids"]
