"""Contracts: requirements for the records of a topic, enforced when they are appended (`ottla.schema.validation`).

A record is inspected before it is written: does it name a schema that is registered (for this topic), and, at level
`full`, can its payload be read with it? A record that fails is handled as the topic says:
- `reject`: the whole batch is refused, with a reason for each faulty record, as Kafka refuses bad timestamps;
- `dlq`: the record goes to the dead-letter topic, with its reason and the offset it would have had; the others are
  written with their own offsets, so that sequence numbers and transactions are not affected;
- `tag`: the record is written with a header that says what is wrong with it.

This class is the interface for other rooms. Most nodes never need it, so the code that inspects records
(`inspector.py`) is imported, by a worker, when the first topic gets a contract or the first batch of such a topic
comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import ModuleType
from typing import TYPE_CHECKING

from ottla.cluster.entities import Change, ConfigChanged
from ottla.model.topic_settings import OTTLA_SCHEMA_VALIDATION
from ottla.server.loop.later import Later

if TYPE_CHECKING:
    from ottla.log.config import ContractTerms
    from ottla.log.inspection import Inspector
    from ottla.replica.partition import Partition
    from ottla.server.dead_letters.dead_letters import DeadLetters
    from ottla.server.loop.runtime import Runtime
    from ottla.server.peers.peer_requests import PeerRequests
    from ottla.server.quorum.metadata_host import MetadataHost
    from ottla.server.schemas.inspector import Inspections
    from ottla.server.storage.storage import Storage

_INSPECTOR = "ottla.server.schemas.inspector"


class Contracts:
    """Returns inspectors for the batches of topics with a contract.

    `load` has a worker import a module; it returns None if the module is imported already or there is no worker.
    """

    def __init__(
        self,
        runtime: Runtime,
        storage: Storage,
        metadata: MetadataHost,
        peers: PeerRequests,
        *,
        dead_letters: Callable[[], DeadLetters],
        load: Callable[[str], Future[ModuleType] | None],
    ) -> None:
        self._runtime = runtime
        self._storage = storage
        self._metadata = metadata
        self._peers = peers
        self._dead_letters = dead_letters
        self._load = load
        self._loading: Future[ModuleType] | None = None
        self._inspections: Inspections | None = None

    def follow(self, changes: Iterable[Change]) -> None:
        """Start the import when a topic gets a contract, because it will soon have batches to inspect."""
        if self._inspections is None and any(map(_sets_contract, changes)):
            self._imported()

    def inspector(self, partition: Partition, terms: ContractTerms) -> Later[Inspector]:
        """Return the inspector for one batch of a partition whose topic has this contract."""
        imported: Later[None] = Later()
        importing = self._imported()
        if importing is None:
            imported.set(None)
        else:
            asyncio.wrap_future(importing).add_done_callback(
                lambda done: imported.fail() if done.cancelled() else imported.set(None)
            )
        return imported.map(lambda _: self._made().inspector(partition, terms))

    @property
    def refusals(self) -> Mapping[str, int]:
        """How many batches of each topic were refused."""
        return {} if self._inspections is None else self._inspections.refusals

    def _imported(self) -> Future[ModuleType] | None:
        """Return the import that is under way; None if there is nothing to wait for."""
        if self._inspections is not None:
            return None
        if self._loading is None:
            self._loading = self._load(_INSPECTOR)
        return None if self._loading is None or self._loading.done() else self._loading

    def _made(self) -> Inspections:
        if self._inspections is None:
            from ottla.server.schemas.inspector import Inspections
            from ottla.server.schemas.schema_cache import SchemaCache

            schemas = SchemaCache(self._runtime, self._storage, self._metadata, self._peers)
            self._inspections = Inspections(schemas, self._dead_letters(), self._runtime.now_ms)
        return self._inspections


def _sets_contract(change: Change) -> bool:
    if not isinstance(change, ConfigChanged) or change.name != OTTLA_SCHEMA_VALIDATION.name:
        return False
    return change.value not in (None, "none")
