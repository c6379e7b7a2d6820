"""The process, and which release it runs."""

from __future__ import annotations

import platform

from ottla.model.version import VERSION
from ottla.observe.metrics.catalogue import process as told
from ottla.observe.metrics.exposition import Exposition
from ottla.server.ports.process_usage import ProcessUsage


def tell_process(usage: ProcessUsage, exposition: Exposition) -> None:
    exposition.add(told.CPU, usage.cpu_s)
    exposition.add(told.RESIDENT, usage.resident_bytes)
    exposition.add(told.MAX_FILES, usage.open_files_max)
    exposition.add(told.THREADS, usage.threads)
    for metric, value in (
        (told.VIRTUAL, usage.virtual_bytes),
        (told.OPEN_FILES, usage.open_files),
        (told.STARTED, usage.started_s),
        (told.DISK_READ, usage.disk_read_bytes),
        (told.DISK_WRITTEN, usage.disk_written_bytes),
    ):
        if value is not None:
            exposition.add(metric, value)
    for generation, count in enumerate(usage.collections):
        exposition.add(told.COLLECTIONS, count, str(generation))


def tell_build(node_id: int, cluster_id: str, exposition: Exposition) -> None:
    exposition.add(told.BUILD, 1, VERSION, platform.python_version(), str(node_id), cluster_id)
