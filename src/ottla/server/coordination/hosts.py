"""Coordinators: the machines of one internal topic, one on each of its partitions that this node leads.

Each command has a key (a group, a transactional id), whose hash determines the partition and so the machine. A
coordinator is on the node that leads its partition: `follow` adds and removes machines as leaderships change. Commands
for a partition that this node does not lead are answered with NOT_COORDINATOR; `leader_of` returns the leading node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from ottla.cluster.entities import NO_LEADER
from ottla.log.files.disk import Cold, StorageError
from ottla.machine.keyed import Entry, Types
from ottla.machine.kit import Command
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.java import java_abs, java_hash
from ottla.server.coordination.host import CoordinatorMachine, Host, ViewT, ignore_reply
from ottla.server.loop.later import Answer, Later, settled
from ottla.server.loop.runtime import Runtime
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.storage.storage import Storage

log = logging.getLogger(__name__)

T = TypeVar("T")
ReplyT = TypeVar("ReplyT")
EffectT = TypeVar("EffectT")


class Coordinators(Generic[ViewT]):
    """All machines of one internal topic on this node."""

    def __init__(
        self,
        runtime: Runtime,
        storage: Storage,
        metadata: MetadataHost,
        create_topic: Callable[[str], Later[ApiError | None]],
        topic: str,
        types: Types,
        make_machine: Callable[[int], CoordinatorMachine[ViewT]],
        write_timeout_ms: Callable[[], int],
    ) -> None:
        self.runtime = runtime
        self.storage = storage
        self._loop = runtime.loop
        self._metadata = metadata
        self._create_topic = create_topic
        self.topic = topic
        self.types = types
        self.make_machine = make_machine
        self.write_timeout_ms = write_timeout_ms  # how long a reply waits for its records to reach all in-sync replicas
        self._performers: dict[type, Callable[[Any, Host[ViewT]], None]] = {}
        self._hosts: dict[int, Host[ViewT]] = {}
        self._creating: list[Later[ApiError | None]] = []  # requests that wait for the topic
        # The timer of the next attempt to open partitions that could not be opened.
        self._again: asyncio.TimerHandle | None = None

    def follow(self) -> None:
        """Add machines for the partitions that this node leads now, and remove those that it does not lead any more."""
        found = self._metadata.state.topics.get(self.topic)
        own = self._metadata.node_id
        led = {each.index for each in found.partitions if each.leader == own} if found is not None else set()
        for index, host in tuple(self._hosts.items()):
            if index not in led or not self.storage.partitions.holds(host.partition):
                self.resign(host)
            else:
                host.leader_epoch = host.partition.leader_epoch
        for index in sorted(led):
            if index not in self._hosts:
                partition = self.storage.partitions.get(self.topic, index)
                if partition is not None:
                    host = self._hosts[index] = Host(self, partition)
                    if partition.log.log_start_offset == partition.log.next_offset:
                        self.load(host)  # the journal is empty
                    else:
                        self.load_soon(host)
                elif self._again is None:
                    self._again = self._loop.call_later(limits.COORDINATOR_RETRY_MS / 1000, self._follow_again)

    def resign(self, host: Host[ViewT]) -> None:
        """Remove a machine, because this node does not lead its partition; waiting commands are answered with
        NOT_COORDINATOR.
        """
        if self._hosts.get(host.index) is host:
            del self._hosts[host.index]
        host.close(ApiError(ErrorCode.NOT_COORDINATOR))

    def resign_all(self) -> None:
        for host in tuple(self._hosts.values()):
            self.resign(host)

    def _follow_again(self) -> None:
        """Try again after a disk failed, even without a request: transactions that are being ended, say, must be
        completed.
        """
        self._again = None
        self.follow()

    def load_soon(self, host: Host[ViewT]) -> None:
        """Load the next slice when it is its turn: a node that takes over many journals reads a part of one per turn of
        the loop.
        """
        self.runtime.slices.soon(partial(self.load, host))

    def load(self, host: Host[ViewT]) -> None:
        """Load one slice now, and the others when it is their turn."""
        # the host may have been removed or reloaded meanwhile
        if self._hosts.get(host.index) is not host or host.active:
            return
        try:
            if not host.load_some():
                self.load_soon(host)
        except Cold as cold:
            self.storage.cold.warm(cold, host, partial(self.load_soon, host))
        except StorageError as error:
            self.storage.partitions.storage_failed(host.partition, error)
            self._loop.call_later(limits.COORDINATOR_RETRY_MS / 1000, self.load_soon, host)
        except Exception:
            log.exception("%s cannot be read: what it coordinates is not available", host.partition.name)

    def on_effect(self, kind: type[EffectT], perform: Callable[[EffectT, Host[ViewT]], None]) -> None:
        """Register `perform` to carry out the effects of this type."""
        self._performers[kind] = perform

    def perform(self, effect: object, host: Host[ViewT]) -> None:
        self._performers[type(effect)](effect, host)

    def ensure_topic(self) -> Later[ApiError | None]:
        """Create the internal topic on first use; set to None when it exists, or to the error."""
        if self.topic in self._metadata.state.topics:
            return settled(None)
        later: Later[ApiError | None] = Later()
        self._creating.append(later)
        if len(self._creating) == 1:  # requests that come meanwhile wait for the same creation
            self._create()
        return later

    def _create(self) -> None:
        """Create the topic, and answer with an error after a while; a slow controller may still create it before the
        client retries.
        """
        waiting = self._creating
        not_now = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

        def settle(error: ApiError | None) -> None:
            if self._creating is waiting:
                self._creating = []
            if error is not None:
                log.info("%s is not there yet: %s", self.topic, error)
            # Any error may disappear with more brokers or other settings, so clients get a retriable one.
            told = None if error is None else not_now
            for later in waiting:
                later.set(told)
            waiting.clear()

        self._create_topic(self.topic).then(settle, lambda: settle(not_now))
        if waiting:
            self._loop.call_later(limits.INTERNAL_TOPIC_WAIT_MS / 1000, settle, not_now)

    def partition_of(self, key: str) -> int:
        """Return the partition of a key: Java's hash of the string, as in Kafka."""
        found = self._metadata.state.topics.get(self.topic)
        if found is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        return java_abs(java_hash(key)) % len(found.partitions)

    def leader_of(self, key: str) -> int:
        """Return the node that coordinates a key. Raises COORDINATOR_NOT_AVAILABLE while there is none."""
        found = self._metadata.state.topics.get(self.topic)
        leader = NO_LEADER if found is None else found.partitions[self.partition_of(key)].leader
        if leader == NO_LEADER:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return leader

    def elsewhere(self, key: str) -> int | None:
        """Return the other node that coordinates a key; None if it is this node, or none."""
        try:
            leader = self.leader_of(key)
        except ApiError:
            return None
        return None if leader == self._metadata.node_id else leader

    def host_of(self, key: str) -> Host[ViewT]:
        host = self._hosts.get(self.partition_of(key))
        if host is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        return host

    def host_at(self, index: int) -> Host[ViewT] | None:
        return self._hosts.get(index)

    def hosts(self) -> Iterator[Host[ViewT]]:
        """Yield the hosts in the order of their partitions."""
        for index in sorted(self._hosts):
            yield self._hosts[index]

    def submit(self, key: str, command: Command[ViewT, Entry, ReplyT]) -> Later[ReplyT | ApiError]:
        """Return the reply of the machine for `key`; an ApiError is set as a value."""
        try:
            return self.host_of(key).ask(command)
        except ApiError as error:
            # Its traceback refers to the callers, and so to the connection that asks.
            return settled(error.with_traceback(None))

    def submit_to_all(self, command: Command[ViewT, Entry, object]) -> None:
        """Submit a command to every loaded machine. A machine that is not loaded reads the cluster's state after its
        load.
        """
        for host in tuple(self._hosts.values()):
            if host.active:
                host.submit(command, ignore_reply)

    def ask(
        self,
        key: str,
        command: Command[ViewT, Entry, ReplyT],
        respond: Callable[[ReplyT], T],
        refuse: Callable[[ApiError], T],
    ) -> Answer[T]:
        """Do `submit` and convert the reply into a response; not a `Later` if the reply is known at once."""
        reply = self.submit(key, command)
        if reply.done:
            value = reply.taken()
            return refuse(value) if isinstance(value, ApiError) else respond(value)
        return reply.map(lambda value: refuse(value) if isinstance(value, ApiError) else respond(value))

    def close(self) -> None:
        if self._again is not None:
            self._again.cancel()
        self.resign_all()
