"""Make all checks of one subject: a configuration file, data directories, a running cluster that was read."""

from __future__ import annotations

from pathlib import Path

from ottla.model.settings.node import NODE_ID
from ottla.operations.doctor.catalogue import CLUSTER, DATA, FILE, REACH, SETTINGS
from ottla.operations.doctor.check import UnseenError
from ottla.operations.doctor.cluster.cluster_seen import ClusterSeen
from ottla.operations.doctor.data.directory_seen import DirectorySeen
from ottla.operations.doctor.examination import Examination, Unmade
from ottla.operations.doctor.settings.node_settings import SettingsSeen
from ottla.operations.doctor.settings.reading import read_file
from ottla.operations.errors import CommandError
from ottla.server.ports.system import is_in_use

_CLUSTER = "cluster"


def examine_file(examination: Examination, path: Path) -> int | None:
    """Make the checks of a file; return the id of its node, if it has one."""
    settings: SettingsSeen = read_file(path)
    examination.make(FILE.all, settings, path.name)
    examination.make(SETTINGS.all, settings, path.name)
    try:
        return settings.broker[NODE_ID] if NODE_ID.name in settings.values else None
    except UnseenError:
        return None


def examine_directories(examination: Examination, paths: list[Path], node_id: int | None) -> None:
    """Make the checks of the data directories of one node, whose id may be known from elsewhere."""
    for path in paths:
        if not path.is_dir():
            what = "is not a directory" if path.exists() else "does not exist"
            raise CommandError(f"{path} {what}", "a data directory is an entry of log.dirs")
    for path in paths:
        seen = DirectorySeen(path, is_in_use(str(path)), tuple(paths), node_id)
        examination.make(DATA.all, seen, str(path))


def examine_cluster(examination: Examination, seen: ClusterSeen) -> None:
    """Make the checks of a cluster and of the settings of its brokers."""
    examination.make(CLUSTER.all, seen, _CLUSTER)
    for node_id, settings in (seen.settings.value or {}).items():
        examination.make(SETTINGS.all, settings, f"broker {node_id}")


def examine_unreachable(examination: Examination, error: Exception) -> None:
    """Note that a cluster could not be read, and that no check of it was made."""
    examination.make(REACH.all, error, _CLUSTER)
    examination.unmade += [Unmade(each.id, _CLUSTER, "the cluster could not be read") for each in CLUSTER.all]
