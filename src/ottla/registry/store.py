"""The registry's records in the topic `_schemas`: read by every instance, written by the leader.

Rules:
- State comes from the log alone: the leader too applies its own records when it reads them back.
- The leader decides on a state that includes everything in the log: it takes over the transactional id (which ends the
  transactions of every earlier writer and fences it), reads to the end, and from then on each change is written,
  committed and read before the next is decided. When the log has to be read anew (see `tail`), the id is taken anew,
  too, and nothing is decided before the end is reached; lookups meanwhile use the former state.
- After any failed write the error alone does not tell whether the records are in the log. So the log is read: the id is
  taken anew (or another instance has), the end is read, and either the very records are there (the change is made, and
  answered), or they never will be, and the change is decided again here or by the new leader.
- The leader announces itself in the log, as soon as it is elected: the others forward changes to no other address (see
  `following`).
- A follower that forwarded a change answers when it has read the log up to its end at that time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ottla.client.cluster import Cluster
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.errors import AuthenticationError, ClientError, ProducerFenced
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.version import VERSION
from ottla.registry.following import Following
from ottla.registry.leader import RegistryElection
from ottla.registry.port import About, NotLeader, Unavailable
from ottla.registry.schema_threads import SchemaThreads
from ottla.registry.security.instances import Instances
from ottla.registry.tail import ReadAnew, Tail, Unreadable
from ottla.registry.topic import WrongTopic, ensure_topic
from ottla.registry.writer import RegistryWriter
from ottla.schemas.registry.commands import RegistryCommand
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.records import LeaderEntry, RegistryRecord, encode
from ottla.schemas.registry.refusal import too_large

log = logging.getLogger(__name__)

T = TypeVar("T")

_RECHECK_S = 2.0  # how soon an unsuitable topic is checked again
_TAKE_AGAIN_S_MAX = 60.0  # the longest pause before a leader that could not take the id tries again


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The topic, and how long a request may take."""

    topic: str = "_schemas"
    replication_factor: int = 3
    timeout_ms: int = 10_000
    peers: tuple[str, ...] = ()  # URLs to which changes may be forwarded without an announcement in the topic


class _Written:
    """Records that may or may not be in the log, from `offset` on; compared with the records that are read."""

    def __init__(self, records: Sequence[RegistryRecord], offset: int) -> None:
        self.is_there = False
        self._offset = offset
        self._wanted = [(each.key, each.value) for each in records]
        self._last: deque[tuple[bytes | None, bytes | None]] = deque(maxlen=len(records))

    def note(self, record: ConsumedRecord) -> None:
        if record.offset >= self._offset and not self.is_there:
            self._last.append((record.key, record.value))
            self.is_there = list(self._last) == self._wanted

    def forget(self) -> None:
        """Start again, because the log is read anew: records seen in it may have been truncated."""
        self.is_there = False
        self._last.clear()


class TopicStore:
    """The `RegistryStorePort` of a running instance."""

    def __init__(
        self,
        cluster: Cluster,
        election: RegistryElection,
        group_id: str,
        options: StoreOptions,
        instances: Instances,
    ) -> None:
        self._cluster = cluster
        self._election = election
        self._group_id = group_id
        self._options = options
        self._transactional_id = f"{group_id}-{options.topic}"
        self._threads = SchemaThreads()
        self._guard = threading.Lock()  # for the caches that the threads of `in_thread` share
        self._applied = 0  # counts records, to detect changes
        self._tail = Tail(cluster, options.topic, self._begin, self._apply, self._threads.change)
        self._following = Following(
            election, self._is_announced, options.peers, options.timeout_ms, cluster.options.backoff_ms, instances
        )
        self._lock = asyncio.Lock()
        self._writer: RegistryWriter | None = None
        self._writer_reading = 0  # the number of the reading (`Tail.reading`) in which the writer took the id
        self._void = 0  # number of the last verdict for this instance that was proved wrong
        self._pending: _Written | None = None
        self._tasks: list[asyncio.Task[None]] = []
        # The topic was read or found unsuitable, or the login to the cluster was refused.
        self._looked = asyncio.Event()
        self._refusal: AuthenticationError | None = None
        self._trouble = "the registry is still reading its topic"

    # --- life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._load()), asyncio.create_task(self._lead_when_elected())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._tail.stop()
        await self._drop_writer()
        self._threads.close()

    async def loaded(self) -> None:
        """Wait until the log was read once. Raises WrongTopic if the topic is unsuitable for a registry, and
        AuthenticationError if the cluster refuses the login of this instance.
        """
        await self._looked.wait()
        if self._refusal is not None:
            raise self._refusal
        if self._tail.state is None:
            raise WrongTopic(self._trouble)

    async def _load(self) -> None:
        """Find or create the topic and read it, however long that takes."""
        tries, reading = 0, False
        while True:
            try:
                await ensure_topic(self._cluster, self._options.topic, self._options.replication_factor)
                if not reading:
                    reading = True
                    self._tail.start()
                await self._tail.read_to_end(committed=True)
                self._looked.set()
                return
            except (WrongTopic, Unreadable) as wrong:
                if str(wrong) != self._trouble:
                    log.error("%s", wrong)
                self._trouble = str(wrong)
                self._looked.set()
                await asyncio.sleep(_RECHECK_S)
            except AuthenticationError as refused:  # final: another attempt would use the same password
                self._refusal, self._trouble = refused, str(refused)
                self._looked.set()
                return
            except (ApiError, ClientError) as error:
                tries += 1
                self._trouble = f"the broker cannot be asked for {self._options.topic}: {error}"
                log.warning("%s", self._trouble)
                await asyncio.sleep(self._cluster.options.backoff_ms(tries) / 1000)

    # --- reading ------------------------------------------------------------------------------------------------

    @property
    def state(self) -> RegistryMachine:
        if self._tail.state is None:
            raise Unavailable(self._trouble)
        return self._tail.state

    async def in_thread(self, work: Callable[[RegistryMachine], T]) -> T:
        return await self._threads.run(partial(work, self.state))

    @property
    def about(self) -> About:
        return About(self._cluster.metadata.cluster_id or "", self._group_id, VERSION)

    def _begin(self) -> RegistryMachine:
        if self._pending is not None:
            self._pending.forget()
        return RegistryMachine(guard=self._guard)

    def _apply(self, machine: RegistryMachine, record: ConsumedRecord) -> None:
        if self._pending is not None:
            self._pending.note(record)
        if record.key is not None:
            self._applied += 1
            machine.apply(RegistryRecord(record.key, record.value, record.headers, record.timestamp))

    # --- writing ------------------------------------------------------------------------------------------------

    async def submit(self, command: RegistryCommand) -> Any:
        try:
            async with asyncio.timeout(2 * self._options.timeout_ms / 1000), self._lock:
                while True:
                    await self._lead()
                    applied, now_ms = self._applied, self._cluster.options.now_ms()
                    result = await self.in_thread(partial(RegistryMachine.decide, command=command, now_ms=now_ms))
                    if not result.records:
                        return result.reply
                    # A decision is valid if nothing has changed meanwhile.
                    if self._knows_all and applied == self._applied and await self._write(result.records):
                        return result.reply
        except TimeoutError:
            raise Unavailable("the operation timed out", timed_out=True) from None

    async def _lead_when_elected(self) -> None:
        """Take the transactional id as soon as this instance is elected: followers forward changes only to an
        announced leader.
        """
        tries = 0
        while True:
            verdict = self._election.verdict
            if not verdict.is_self or verdict.number <= self._void:
                await self._election.changed(verdict.number)
                continue
            try:
                async with asyncio.timeout(2 * self._options.timeout_ms / 1000), self._lock:
                    await self._lead()
                tries = 0
                await self._election.changed(verdict.number)
            except Exception as error:  # the task must go on after any error, or the leader would never be announced
                tries += 1
                is_defect = not isinstance(error, NotLeader | Unavailable | TimeoutError)
                log.info("%s is not written yet: %s", self._options.topic, error, exc_info=is_defect)
                await asyncio.sleep(min(self._cluster.options.backoff_ms(tries) / 1000 * tries, _TAKE_AGAIN_S_MAX))

    async def _lead(self) -> None:
        """Make sure that this instance is the writer and has read everything that was written."""
        if self._tail.state is None:
            raise Unavailable(self._trouble)
        while True:
            if self._tail.trouble is not None:
                raise Unavailable(self._tail.trouble)
            verdict = self._election.verdict
            usable = verdict.number > self._void
            if usable and verdict.is_self:
                if self._writer is not None and self._knows_all:
                    return
                await self._drop_writer()
                await self._take(verdict.number)
            elif usable and verdict.leader is not None:
                await self._drop_writer()
                raise NotLeader(verdict.leader.url)
            else:
                await self._wait_for_leader(verdict.number)

    @property
    def _knows_all(self) -> bool:
        """Whether the state includes all that was in the log when the writer took the id, and all
        that it wrote since.
        """
        return self._tail.is_current and self._tail.reading == self._writer_reading

    async def _wait_for_leader(self, number: int) -> None:
        try:
            async with asyncio.timeout(self._options.timeout_ms / 1000):
                await self._election.changed(number)
        except TimeoutError:
            raise NotLeader(None) from None

    async def _take(self, number: int) -> None:
        """Take the transactional id, read to the end, and announce this instance in the log."""
        options = self._options
        writer = RegistryWriter(self._cluster, options.topic, self._transactional_id, options.timeout_ms)
        try:
            await writer.take()
            await self._tail.read_to_end()
            if not self._is_announced(self._election.identity.url):
                reading = self._tail.reading
                entry = LeaderEntry(self._election.identity.url)
                await self._tail.wait_for(await writer.write([encode(entry, self._cluster.options.now_ms())]), reading)
        except ProducerFenced:
            self._distrust(number)
            await writer.close()
        except (ApiError, ClientError) as error:
            await writer.close()
            raise Unavailable(f"{options.topic} cannot be written: {error}") from error
        except BaseException:
            await writer.close()
            raise
        else:
            self._writer, self._writer_reading = writer, self._tail.reading

    async def _write(self, records: Sequence[RegistryRecord]) -> bool:
        """Write and read back. Return False if nothing was written for sure, and another decision is needed."""
        assert self._writer is not None
        number = self._election.verdict.number
        position = self._tail.position
        pending = self._pending = _Written(records, position)
        try:
            end = await self._writer.write(records)
            if end <= position:
                raise ReadAnew(f"{self._options.topic} ends before what was read of it")
            await self._tail.wait_for(end, self._writer_reading)
            return True
        except (ApiError, ClientError) as error:
            if isinstance(error, ApiError) and error.code == ErrorCode.MESSAGE_TOO_LARGE:
                raise too_large("The schema is larger than the topic of the registry takes.") from None
            log.warning("a write to %s failed: %s", self._options.topic, error)
            await self._drop_writer()
            if isinstance(error, ProducerFenced):
                self._distrust(number)
            await self._settle(error)
            return pending.is_there
        except BaseException:
            # Cancelled in between: the outcome is found out before the next decision.
            await self._drop_writer()
            raise
        finally:
            self._pending = None

    async def _settle(self, cause: Exception) -> None:
        """Find out the outcome of a write: by taking the id anew, or by reading to the end if
        another instance leads.
        """
        try:
            await self._lead()
        except NotLeader:
            try:
                await self._tail.read_to_end()
            except (ApiError, ClientError):
                raise Unavailable(f"{self._options.topic} cannot be read: {cause}") from cause

    def _distrust(self, number: int) -> None:
        """Mark the verdict as wrong, because another instance writes, and ask the group again."""
        self._void = max(self._void, number)
        self._election.again()

    async def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.close()

    # --- forwarding ---------------------------------------------------------------------------------------------

    def _is_announced(self, url: str) -> bool:
        return self._tail.state is not None and self._tail.state.state.leader_url == url

    async def forward(self, request: Request) -> Response:
        reply = await self._following.forward(request)
        if reply.status < 300:
            await self._catch_up()
        return Response(reply.body, reply.status, media_type=reply.content_type)

    async def _catch_up(self) -> None:
        try:
            async with asyncio.timeout(self._options.timeout_ms / 1000):
                await self._tail.read_to_end(committed=True)
        except (ApiError, ClientError, TimeoutError) as error:
            log.warning("a forwarded change is made, but not read here yet: %s", error)
