"""Host: one coordinator's machine, run on one partition of its internal topic that this node leads.

- The machine is loaded by replaying the partition, in slices so that a long journal never blocks the loop; until then
  the answer is COORDINATOR_LOAD_IN_PROGRESS.
- A reply is sent when its records are below the high watermark, which means that all in-sync replicas have them. If
  that takes too long, or too few replicas are in sync, the answer is COORDINATOR_NOT_AVAILABLE.
- Everything is appended under the leader epoch in which the host took over the partition, so the appends of a host that
  is no longer the leader are refused, even if it does not know yet. When it learns this, waiting commands are answered
  with NOT_COORDINATOR.
- When appended records are truncated (a write or a sync failed), the machine has applied records that do not exist any
  more: it is dropped and loaded anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, Protocol, TypeVar

from ottla.log.files.disk import StorageError, in_a_hurry
from ottla.log.producers.producers import Origin
from ottla.machine.keyed import Entry, Marker, Types, batch_of, entries_of
from ottla.machine.kit import Command, Journaled, Loaded
from ottla.machine.runner import Runner
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import headers
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.storage.storage import Storage

log = logging.getLogger(__name__)

ViewT = TypeVar("ViewT")
ViewT_co = TypeVar("ViewT_co", covariant=True)
ReplyT = TypeVar("ReplyT")
# The error for the client of a coordinator if the journal refuses an append; other errors are passed on as they are.
_MEANINGS = {
    # Clients of a coordinator do not expect these; Kafka answers UNKNOWN_SERVER_ERROR, too.
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
}


def ignore_reply(_: object) -> None:
    """Ignore the reply to a command that no client waits for."""


class CoordinatorMachine(Journaled[Command[ViewT_co, Entry, object] | Loaded, Entry, object], Protocol[ViewT_co]):
    """A coordinator's machine, whose commands read its state through a view. Its journal also has the markers of
    transactions.
    """

    def apply(self, record: Entry | Marker) -> Sequence[object]: ...


class HostOwner(Protocol[ViewT]):
    """The part of `Coordinators` (`server/coordination/hosts.py`) that its hosts use."""

    runtime: Runtime
    storage: Storage
    types: Types
    make_machine: Callable[[int], CoordinatorMachine[ViewT]]
    write_timeout_ms: Callable[[], int]

    def load_soon(self, host: Host[ViewT]) -> None: ...

    def resign(self, host: Host[ViewT]) -> None: ...

    def perform(self, effect: object, host: Host[ViewT]) -> None: ...


class Host(Generic[ViewT]):
    """One machine on one partition."""

    def __init__(self, owner: HostOwner[ViewT], partition: Partition) -> None:
        self.partition = partition
        self.index = partition.index
        self.leader_epoch = partition.leader_epoch
        self.active = False
        self._owner = owner
        self._runtime = owner.runtime
        self._storage = owner.storage
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None
        self._closed = False
        self._lost = False  # whether the journal has another leader or another leader epoch
        self._begin()

    @property
    def machine(self) -> CoordinatorMachine[ViewT]:
        return self._machine

    def _begin(self) -> None:
        """Start with an empty machine, to be loaded."""
        self.active = False
        self._machine = self._owner.make_machine(self.index)
        self._runner: Runner[Command[ViewT, Entry, object] | Loaded, Entry, object] = Runner(
            self._machine, self._append, perform=self._perform, soon=self._runtime.slices.soon
        )
        self._cuts = self.partition.cuts
        self._load_from = self.partition.log.log_start_offset
        self._read: Iterator[Entry | Marker] = iter(())  # entries that are read and not applied yet
        self._beginning: Iterator[Loaded] | None = None  # set once all entries are applied
        self._put_off = False  # whether the first command failed and the load will be repeated
        self._watching = False

    # --- loading

    def load_some(self) -> bool:
        """Load one slice; True when the machine is up to date and answers. Raises Cold before anything has changed."""
        if self._put_off or self._reload_if_cut():
            return True
        if self._beginning is None:
            left = self._apply_some(limits.COORDINATOR_LOAD_RECORDS)
            log_ = self.partition.log
            if left and self._load_from < log_.next_offset:
                self._read_some()
                left = self._apply_some(left)
            if not left or self._load_from < log_.next_offset:
                return False
            self._runner.follow(log_.next_offset)
            self._beginning = self._machine.beginning()
        return self._begin_with(next(self._beginning))

    def _read_some(self) -> None:
        log_ = self.partition.log
        with in_a_hurry(log_.directory):
            read = log_.read(self._load_from, limits.COORDINATOR_LOAD_BYTES, max_offset=log_.next_offset)
            data = memoryview(read.slice.read() if read.slice is not None else b"")
        if read.slice is None:
            self._load_from = log_.next_offset  # compaction removed all of the rest
        self._read = self._entries(data)

    def _apply_some(self, most: int) -> int:
        """Apply at most `most` entries; return how many more could have been applied."""
        for entry in islice(self._read, most):
            self._machine.apply(entry)
            most -= 1
        return most

    def _entries(self, data: memoryview) -> Iterator[Entry | Marker]:
        for position, header in headers(data):
            yield from entries_of(data[position : position + header.size_bytes], header, self._owner.types)
            self._load_from = header.next_offset

    def _begin_with(self, command: Loaded) -> bool:
        if command.last is None:
            beginning, self.active = self._beginning, True
            self._committed()
            if self._beginning is not beginning:  # the journal was truncated, and is read anew
                return True
        self._carry_out(command, self._begun)
        return self.active or self._put_off

    def _begun(self, answer: object) -> None:
        """Load the machine anew if its first command could not be written: otherwise its timers and effects would be
        missing.
        """
        if isinstance(answer, ApiError) and not self._put_off:
            self.active, self._put_off = False, True
            self._runtime.loop.call_later(limits.COORDINATOR_RETRY_MS / 1000, self._begin_again)

    def _begin_again(self) -> None:
        if not self._closed and not self.active:
            self.reload("could not be taken up")

    # --- commands

    def submit(self, command: Command[ViewT, Entry, ReplyT], reply: Callable[[ReplyT | ApiError], None]) -> None:
        """Carry out a command; `reply` is called once, with the value or an ApiError."""
        self._reload_if_cut()  # otherwise the command would be decided on records that are gone
        if not self.active:
            reply(ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            self._carry_out(command, reply)

    def _carry_out(
        self, command: Command[ViewT, Entry, ReplyT] | Loaded, reply: Callable[[ReplyT | ApiError], None]
    ) -> None:
        try:
            self._runner.submit(command, self._runtime.clocks.moment(), reply)
        except StorageError as error:
            self._storage.partitions.storage_failed(self.partition, error)
            reply(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)))
        except Exception:
            if self._runner.broken:
                self._give_up(command)
            raise
        if self._lost:
            self._owner.resign(self)
            return
        self._committed()
        self._arm()

    def _give_up(self, command: Command[ViewT, Entry, object] | Loaded) -> None:
        if isinstance(command, Loaded):
            self.active = False  # another attempt would fail in the same way
        else:
            self.reload("could not be followed")

    def ask(self, command: Command[ViewT, Entry, ReplyT]) -> Later[ReplyT | ApiError]:
        """Return the reply; an ApiError is set as a value. An exception of its callback is logged, so that other
        replies are sent.
        """
        later: Later[ReplyT | ApiError] = Later()

        def answer(value: ReplyT | ApiError) -> None:
            if later.done:
                return
            try:
                later.set(value)
            except Exception:
                log.exception("an answer of %s could not be given", self.partition.name)

        self.submit(command, answer)
        return later

    def write_marker(self, batch: bytearray, marker: Marker, transaction_version: int) -> None:
        """Append and apply the end of a transaction that has entries in this journal. Raises ApiError, StorageError."""
        self.partition.append(
            batch,
            now_ms=self._runtime.now_ms(),
            acks=ACKS_ALL,
            leader_epoch=self.leader_epoch,
            origin=Origin.COORDINATOR,
            transaction_version=transaction_version,
        )
        self._storage.appended(self.partition)
        if self._beginning is not None:  # otherwise the load will read it
            self._machine.apply(marker)
            self._runner.follow(self.partition.log.next_offset)
            self._committed()

    def _append(self, entries: Sequence[Entry]) -> int:
        now_ms = self._runtime.now_ms()
        batch = memoryview(batch_of(entries, now_ms))
        try:
            self.partition.append(
                batch, now_ms=now_ms, acks=ACKS_ALL, leader_epoch=self.leader_epoch, origin=Origin.COORDINATOR
            )
        except ApiError as error:
            meaning = _MEANINGS.get(error.code)
            if meaning is None:
                raise
            self._lost = meaning == ErrorCode.NOT_COORDINATOR
            log.log(
                logging.WARNING if meaning == ErrorCode.UNKNOWN_SERVER_ERROR else logging.INFO,
                "a command to the coordinator of %s is refused: %s",
                self.partition.name,
                error,
            )
            raise ApiError(meaning) from error
        self._storage.appended(self.partition)
        return self.partition.log.next_offset

    def _perform(self, effect: object) -> None:
        self._owner.perform(effect, self)

    # --- commits and timers

    def _committed(self) -> bool:
        """Send the replies that the high watermark has passed; True if none waits any more."""
        if self._reload_if_cut():
            return True
        self._runner.commit(self.partition.high_watermark)
        done = self._runner.committed_offset >= self._runner.next_offset
        if not done and not self._watching:
            self._watching = True
            self._watch()
        return done

    def _watch(self) -> None:
        """Wait until the high watermark has moved far enough, or a reply has waited too long."""
        since_ms = self._runner.waits_since_ms
        waited_ms = 0 if since_ms is None else self._runtime.steady_ms() - since_ms
        left_ms = max(self._owner.write_timeout_ms() - waited_ms, 1)
        self._storage.waiters.watch(Later(), [self.partition], self._moved, left_ms)

    def _moved(self, changed: object) -> bool:
        if self._closed:
            return True
        if self._committed():
            self._watching = False
            return True
        if changed is None:
            before_ms = self._runtime.steady_ms() - self._owner.write_timeout_ms()
            self._runner.give_up(before_ms, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            self._watch()
            return True
        return False

    def _reload_if_cut(self) -> bool:
        """Load the machine anew if records that it has applied were truncated, because a write or a sync failed; True
        if so.

        Whoever truncates the log tells its waiters in a later turn of the loop, so every use of the machine asks first.
        """
        if self.partition.cuts == self._cuts:
            return False
        self.reload("was cut")
        return True

    def reload(self, why: str) -> None:
        """Drop the machine, whose state differs from the journal, and load it anew."""
        log.warning("%s %s: its coordinator begins anew", self.partition.name, why)
        self._runner.resign(ApiError(ErrorCode.NOT_COORDINATOR))
        self._disarm()
        self._begin()
        self._owner.load_soon(self)

    def _arm(self) -> None:
        deadline_ms = self._runner.next_deadline_ms
        if deadline_ms is None or self._closed or not self.active:
            self._disarm()
            return
        if self._timer_ms is None or deadline_ms < self._timer_ms:
            self._disarm()
            self._timer_ms = deadline_ms
            delay_ms = deadline_ms - self._runtime.steady_ms()
            self._timer = self._runtime.loop.call_later(max(0, delay_ms) / 1000, self._wake)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_ms = None

    def _wake(self) -> None:
        self._timer = self._timer_ms = None
        if self._reload_if_cut():
            return
        try:
            self._runner.wake(self._runtime.clocks.moment())
        except StorageError as error:
            self._storage.partitions.storage_failed(self.partition, error)
        except ApiError as error:  # refused by the machine or the journal: the timer is due again soon
            log.info("a timer of %s has to wait: %s", self.partition.name, error)
        except Exception:  # a bug in one command; the other timers go on
            log.exception("a timer of %s failed", self.partition.name)
            if self._runner.broken:
                self.reload("could not be followed")
        if self._lost:
            self._owner.resign(self)
            return
        self._committed()
        self._arm()

    def close(self, error: ApiError) -> None:
        self._closed = True
        self.active = False
        self._disarm()
        self._runner.resign(error)
