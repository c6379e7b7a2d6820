"""A real `Storage` over simulated disks, for tests that need no whole node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

from ottla.replica.partition import Partition
from ottla.server.api.context import ClientViews, Facades
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.quotas.client_quotas import ClientQuotas
from ottla.server.settings.configs import Configs
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.storage import Storage


def storage_of(
    runtime: Runtime,
    configs: Configs,
    directories: Sequence[DataDirectory],
    considered: Callable[[Partition], Any] = lambda partition: None,
) -> Storage:
    """`considered` is told of partitions whose in-sync replicas may have to change."""
    return Storage(
        runtime,
        configs,
        RequestMemory.of(configs.broker),
        directories,
        configs.node_id,
        isr_may_change=considered,
    )


NO_AUTHORIZATION = SimpleNamespace(authorizer=None, audit=None)


def facades_of(runtime: Runtime, authorization: Any = NO_AUTHORIZATION, **rooms: Any) -> Facades:
    """What handlers see of a node that has these rooms and no others."""
    nobody: Any = SimpleNamespace(metadata=SimpleNamespace(node_id=1, cluster_id=""))
    every = {field.name: None for field in fields(Facades)} | {
        "security": SimpleNamespace(authorization=authorization),
        "quotas": ClientQuotas(runtime, Configs({}).broker),
        "tenants": SimpleNamespace(full=None),
        "clients": ClientViews(telemetry=None, request_log=lambda: nobody),
    }
    return Facades(**{**every, "member": nobody, "runtime": runtime, **rooms})  # type: ignore[arg-type]
