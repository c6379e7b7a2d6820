"""Coordinators: the machines of one internal topic, each run on its partition of that topic.

Whoever asks names a key (a group, a transactional id); its hash says which partition, hence which machine, is in
charge. A partition's machine is loaded by replaying the partition, in slices so that a long journal never holds up the
loop; until then the answer is COORDINATOR_LOAD_IN_PROGRESS. A reply leaves when its records are below the high
watermark. When a failed sync cuts off what was appended, the machine knows too much: it is thrown away and loaded anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

from ottla.cluster.commands.create_topics import CreateTopics
from ottla.log.disk import StorageError
from ottla.log.producers import Origin
from ottla.machine.keyed import Entry, Marker, Types, batch_of, entries_of
from ottla.machine.kit import Loaded, Machine
from ottla.machine.runner import Runner
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import headers
from ottla.replica.partition import Partition
from ottla.server.answer import Answer, Later
from ottla.server.context import Services
from ottla.server.internal_topics import new_topic

log = logging.getLogger(__name__)

MachineT = TypeVar("MachineT", bound=Machine[Any, Any])
T = TypeVar("T")
# Nobody who asks a coordinator expects these; Kafka's clients are told of an unexpected error.
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_INT32 = 0xFFFFFFFF
_SIGN = 0x80000000


class Host(Generic[MachineT]):
    """One machine on one partition."""

    def __init__(self, owner: Coordinators[MachineT], partition: Partition) -> None:
        self.partition = partition
        self.index = partition.index
        self.active = False
        self._owner = owner
        self._services = owner.services
        self._timer: Any = None
        self._timer_ms: int | None = None
        self._closed = False
        self._begin()

    @property
    def machine(self) -> MachineT:
        return self._machine

    def _begin(self) -> None:
        """An empty machine, about to be loaded."""
        self.active = False
        self._machine = self._owner.make_machine(self.index)
        self._runner: Runner[Any, Any] = Runner(self._machine, self._append, _nothing, self._perform)
        self._cuts = self.partition.cuts
        self._load_from = self.partition.log.log_start_offset
        self._watching = False

    # --- loading

    def load_some(self) -> bool:
        """Replay one slice; True when the machine is up to date and answers."""
        log_ = self.partition.log
        read = log_.read(self._load_from, limits.COORDINATOR_LOAD_BYTES, max_offset=log_.next_offset)
        if read.slice is not None:
            data = memoryview(read.slice.read())
            for position, header in headers(data):
                for entry in entries_of(data[position : position + header.size_bytes], header, self._owner.types):
                    self._machine.apply(entry)
                self._load_from = header.next_offset
        if read.slice is not None and self._load_from < log_.next_offset:
            return False
        self._runner.next_offset = log_.next_offset
        self.active = True
        self._committed()
        self.submit(Loaded(), self._begun)
        return True

    def _begun(self, answer: Any) -> None:
        """What is to be done first could not be written: without it nothing would go on by itself."""
        if isinstance(answer, ApiError) and self.active:
            self.active = False
            self._owner.loop.call_later(limits.COORDINATOR_RETRY_MS / 1000, self._begin_again)

    def _begin_again(self) -> None:
        if not self._closed and not self.active:
            self.reload("could not be taken up")

    # --- commands

    def submit(self, command: Any, reply: Callable[[Any], None]) -> None:
        """`reply` is called once, with the value or an ApiError."""
        if not self.active:
            reply(ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        try:
            self._runner.submit(command, self._services.now_ms(), reply)
        except StorageError as error:
            self._services.partitions.storage_failed(self.partition, error)
            reply(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)))
        except Exception:
            if self._runner.broken:
                self._give_up(command)
            raise
        self._committed()
        self._arm()

    def _give_up(self, command: Any) -> None:
        if isinstance(command, Loaded):
            self.active = False  # the next attempt would fare no better
        else:
            self.reload("could not be followed")

    def ask(self, command: Any) -> Later[Any]:
        """The reply; an ApiError arrives as a value. Whoever cannot take it hurts nobody else who waits."""
        later: Later[Any] = Later()

        def answer(value: Any) -> None:
            if later.done:
                return
            try:
                later.set(value)
            except Exception:
                log.exception("an answer of %s could not be given", self.partition.name)

        self.submit(command, answer)
        return later

    def write_marker(self, batch: bytearray, marker: Marker, transaction_version: int) -> None:
        """The end of a transaction that has entries in this journal. Raises ApiError, StorageError."""
        self.partition.append(
            batch,
            now_ms=self._services.now_ms(),
            origin=Origin.COORDINATOR,
            transaction_version=transaction_version,
        )
        self._appended()
        if self.active:
            self._machine.apply(marker)
            self._runner.next_offset = self.partition.log.next_offset
            self._committed()

    def _append(self, entries: Sequence[Entry]) -> int:
        now_ms = self._services.now_ms()
        try:
            self.partition.append(memoryview(batch_of(entries, now_ms)), now_ms=now_ms, origin=Origin.COORDINATOR)
        except ApiError as error:
            if error.code not in _TOO_LARGE:
                raise
            log.warning("what somebody wanted of the coordinator is refused: %s", error)
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        self._appended()
        return self.partition.log.next_offset

    def _appended(self) -> None:
        if not self.partition.durable:
            self._services.waiters.notify(self.partition)
        if self.partition.needs_sync:
            self._services.syncer.request(self.partition)

    def _perform(self, effect: Any) -> None:
        self._owner.perform(effect, self)

    # --- commits and timers

    def _committed(self) -> bool:
        """Releases what the high watermark has passed; True if nothing waits for it any more."""
        if self.partition.cuts != self._cuts:
            self.reload("was cut")  # what the machine knows was taken back by a failed sync
            return True
        self._runner.commit(self.partition.high_watermark)
        done = self._runner.committed_offset >= self._runner.next_offset
        if not done and not self._watching:
            self._watching = True
            self._services.waiters.watch(Later(), [self.partition], self._moved, limits.WAIT_MS_MAX)
        return done

    def _moved(self, changed: Partition | None) -> bool:
        if self._closed:
            return True
        if changed is None:
            self._watching = False
            self._committed()
            return True
        if self._committed():
            self._watching = False
            return True
        return False

    def reload(self, why: str) -> None:
        """What the machine knows is not what the journal says."""
        log.warning("%s %s: its coordinator begins anew", self.partition.name, why)
        self._runner.resign(ApiError(ErrorCode.NOT_COORDINATOR))
        self._disarm()
        self._begin()
        self._owner.load(self)

    def _arm(self) -> None:
        deadline_ms = self._runner.next_deadline_ms
        if deadline_ms is None or self._closed:
            self._disarm()
            return
        delay_ms = deadline_ms - self._services.now_ms()
        # What is overdue although its timer runs: the clock was set forward. All others wait behind it.
        if self._timer_ms is None or deadline_ms < self._timer_ms or delay_ms <= 0:
            self._disarm()
            self._timer_ms = deadline_ms
            self._timer = self._owner.loop.call_later(max(0, delay_ms) / 1000, self._wake)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_ms = None

    def _wake(self) -> None:
        self._timer = self._timer_ms = None
        try:
            self._runner.wake(self._services.now_ms())
        except StorageError as error:
            self._services.partitions.storage_failed(self.partition, error)
        except Exception:  # a mistake of ours in one command; the other timers go on
            log.exception("a timer of %s failed", self.partition.name)
            if self._runner.broken:
                self.reload("could not be followed")
        self._committed()
        self._arm()

    def close(self, error: ApiError) -> None:
        self._closed = True
        self.active = False
        self._disarm()
        self._runner.resign(error)


class Coordinators(Generic[MachineT]):
    """All machines of one internal topic on this node."""

    def __init__(
        self,
        loop: Any,
        services: Services,
        topic: str,
        types: Types,
        make_machine: Callable[[int], MachineT],
    ) -> None:
        self.loop = loop
        self.services = services
        self.topic = topic
        self.types = types
        self.make_machine = make_machine
        self._performers: dict[type, Callable[[Any, Host[MachineT]], None]] = {}
        self._hosts: dict[int, Host[MachineT]] = {}
        self._again: Any = None  # the timer of the next attempt to take up what could not be opened

    def follow(self) -> None:
        """Take up partitions that are new (at the start: all), drop those that are gone."""
        found = self.services.metadata.state.topics.get(self.topic)
        count = len(found.partitions) if found is not None else 0
        for index, host in tuple(self._hosts.items()):
            if index >= count or not self.services.partitions.holds(host.partition):
                del self._hosts[index]
                host.close(ApiError(ErrorCode.NOT_COORDINATOR))
        for index in range(count):
            if index not in self._hosts:
                partition = self.services.partitions.get(self.topic, index)
                if partition is not None:
                    host = self._hosts[index] = Host(self, partition)
                    self.load(host)
                elif self._again is None:
                    self._again = self.loop.call_later(limits.COORDINATOR_RETRY_MS / 1000, self._follow_again)

    def _follow_again(self) -> None:
        """A disk failed: what is left half done in a journal must go on although nobody asks."""
        self._again = None
        self.follow()

    def load(self, host: Host[MachineT]) -> None:
        """Small journals at once, long ones bit by bit."""
        if self._hosts.get(host.index) is not host:
            return
        try:
            if not host.load_some():
                self.loop.call_soon(self.load, host)
        except StorageError as error:
            self.services.partitions.storage_failed(host.partition, error)
            self.loop.call_later(limits.COORDINATOR_RETRY_MS / 1000, self.load, host)
        except Exception:
            log.exception("%s cannot be read: what it coordinates is not available", host.partition.name)

    def on_effect(self, kind: type, perform: Callable[[Any, Host[MachineT]], None]) -> None:
        """Who carries out effects of this type."""
        self._performers[kind] = perform

    def perform(self, effect: Any, host: Host[MachineT]) -> None:
        self._performers[type(effect)](effect, host)

    def ensure_topic(self) -> None:
        """Creates the internal topic on first use. Raises ApiError if that is not possible now."""
        if self.topic in self.services.metadata.state.topics:
            return
        (outcome,) = self.services.metadata.submit(
            CreateTopics(
                (new_topic(self.topic, self.services.configs.broker, len(self.services.metadata.state.brokers)),)
            )
        )
        if outcome.error is not None:
            raise outcome.error

    def partition_of(self, key: str) -> int:
        """The partition in charge of a key: Java's hash of the string, as Kafka does it."""
        found = self.services.metadata.state.topics.get(self.topic)
        if found is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        return java_abs(java_hash(key)) % len(found.partitions)

    def host_of(self, key: str) -> Host[MachineT]:
        host = self._hosts.get(self.partition_of(key))
        if host is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        return host

    def host_at(self, index: int) -> Host[MachineT] | None:
        return self._hosts.get(index)

    def hosts(self) -> Iterator[Host[MachineT]]:
        """In order of their partitions."""
        for index in sorted(self._hosts):
            yield self._hosts[index]

    def submit(self, key: str, command: Any) -> Later[Any]:
        """The reply of the machine in charge of `key`; an ApiError arrives as a value."""
        try:
            return self.host_of(key).ask(command)
        except ApiError as error:
            refused: Later[Any] = Later()
            refused.set(error)
            return refused

    def submit_to_all(self, command: Any) -> None:
        """To every machine that is loaded; one that is not yet sees the world as it is then."""
        for host in tuple(self._hosts.values()):
            if host.active:
                host.submit(command, _nothing)

    def ask(self, key: str, command: Any, respond: Callable[[Any], T], refuse: Callable[[ApiError], T]) -> Answer[T]:
        """`submit`, with the reply made into a response; at once where the reply is there at once."""
        reply = self.submit(key, command)
        if reply.done:
            value = reply.taken()
            return refuse(value) if isinstance(value, ApiError) else respond(value)
        return reply.map(lambda value: refuse(value) if isinstance(value, ApiError) else respond(value))

    def close(self) -> None:
        if self._again is not None:
            self._again.cancel()
        for host in self._hosts.values():
            host.close(ApiError(ErrorCode.NOT_COORDINATOR))
        self._hosts.clear()


def java_abs(unsigned: int) -> int:
    """What Kafka makes of a hash that Java takes for negative: its absolute value, and zero of the one without."""
    return unsigned if unsigned < _SIGN else (_INT32 + 1 - unsigned) % _SIGN


@lru_cache(limits.KEY_HASHES_MAX)
def java_hash(text: str) -> int:
    """`String.hashCode`, as an unsigned number: over UTF-16 code units."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & _INT32
    return value


def _nothing(_: Any) -> None:
    """Whom nobody asked."""
