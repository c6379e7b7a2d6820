"""Writes quotas into the metadata of a running broker."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from tests.support.waiting import WAIT_S

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.server.node import Node
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.journal.cluster_metadata import ClientQuotaRecord


class WriteQuota(NamedTuple):
    """The command that sets one quota, or removes it (None)."""

    entity: dict[str, str | None]
    key: str
    value: float | None

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, None]:
        parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in self.entity.items()]
        removed = self.value is None
        record = ClientQuotaRecord(entity=parts, key=self.key, value=self.value or 0.0, remove=removed)
        return Result([MetadataEntry(record)], None)


async def write_quota(node: Node, entity: dict[str, str | None], key: str, value: float | None) -> None:
    """For a test on the loop of the active controller."""
    await node.member.controller.submit(WriteQuota(entity, key, value))


def set_quota(broker: EmbeddedBroker, entity: dict[str, str | None], key: str, value: float | None) -> None:
    """Set a quota and return when the broker follows it."""
    node = broker.node
    assert node is not None
    in_its_loop(broker, write_quota(node, entity, key, value))


def in_its_loop(broker: EmbeddedBroker, work: Any) -> Any:
    loop = broker._thread.loop
    assert loop is not None
    return asyncio.run_coroutine_threadsafe(work, loop).result(WAIT_S)
