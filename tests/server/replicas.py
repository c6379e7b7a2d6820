"""Two brokers without sockets that share one cluster state: fetches go from a real fetcher to the real handler.

Every request and answer goes through its bytes. What the test wants of the cluster it writes as records of the
metadata journal.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

from tests.server.storages import facades_of, storage_of
from tests.support.waiting import WAIT_S

from ottla.client.errors import ConnectionLost, NotConnected
from ottla.cluster.entities import UNASSIGNED_DIRECTORY
from ottla.cluster.state import ClusterState
from ottla.machine.stepped import in_one_go
from ottla.model.ids import TopicPartition
from ottla.records.build import build_batch
from ottla.replica.partition import Partition
from ottla.server.api.context import Context, Facades, Peer
from ottla.server.fetch.fetches import Fetches
from ottla.server.handlers.records.fetch import fetch
from ottla.server.handlers.records.list_offsets import list_offsets
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.replication.quotas import Quotas
from ottla.server.replication.replication import Replication
from ottla.server.settings.configs import Configs
from ottla.server.storage.directories import open_directories
from ottla.sim.world.disk import SimDisk
from ottla.wire import api, compile
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.message import Request
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest

LEADER, FOLLOWER = 1, 2
LISTENER = "PLAINTEXT"
HANDLERS: dict[int, Callable[[Any, Any], Any]] = {FetchRequest.key: fetch, ListOffsetsRequest.key: list_offsets}


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\1")


async def eventually(condition: Callable[[], Any], what: str = "the condition", within_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} never came true"
        await asyncio.sleep(0.002)


class Side:
    """One broker: its partitions and what handlers need of the rest."""

    def __init__(self, node_id: int, state: ClusterState, disks: dict[str, SimDisk], values: dict[str, str]) -> None:
        self.node_id = node_id
        self.state = state
        self.disks = disks
        self.configs = Configs({"node.id": str(node_id), "log.dirs": ",".join(disks), **values})
        self.configs.follow(state)
        self.directories = open_directories(self.configs.log_dirs(), disks.__getitem__)
        for number, directory in enumerate(self.directories):
            directory.id = bytes([node_id, number]).ljust(16, b"\2")
        loop = asyncio.get_running_loop()
        self.considered: list[Partition] = []
        self.runtime = Runtime(loop, now_ms=now_ms, rng=random.Random(1))
        self.storage = storage_of(self.runtime, self.configs, self.directories, self.considered.append)
        self.partitions, self.waiters = self.storage.partitions, self.storage.waiters
        in_one_go(self.storage.changes.loading(state))
        self.fetches = Fetches(
            self.runtime,
            self.configs,
            self.storage,
            lambda: state,
            Quotas(self.configs, now_ms, lambda topic, index: True).leader,
            _no_commit,
        )
        self.member: Any = SimpleNamespace(
            link=None,
            state=state,
            metadata=SimpleNamespace(state=state, node_id=node_id, cluster_id=""),
            liveness=SimpleNamespace(look_at=lambda broker_id: None),
        )
        self.peers: Any = None
        self.replication: Replication | None = None

    def replicate(self) -> Replication:
        self.replication = Replication(self.runtime, self.configs, self.storage, self.peers, self.member)
        return self.replication

    def facades(self) -> Facades:
        return facades_of(
            self.runtime,
            configs=self.configs,
            storage=self.storage,
            member=self.member,
            fetches=self.fetches,
            replication=self.replication,
            advertised=lambda listener: None,
        )

    def handle(self, request: Request, version: int) -> Any:
        context = Context(self.facades(), Peer(LISTENER, ("127.0.0.1", 1), ("127.0.0.1", 2)))
        context.request_version = version
        return HANDLERS[type(request).key](_through_bytes(request, type(request), version), context)

    def changed(self, changes: Sequence[Any]) -> None:
        self.configs.forget()
        in_one_go(self.storage.changes.following(changes))
        if self.replication is not None:
            in_one_go(self.replication.following(changes))

    def log(self, topic: str = "t", index: int = 0) -> Any:
        return self.partitions.find(topic, index).log

    def produce(self, topic: str = "t", index: int = 0, *, count: int = 1, value: bytes = b"x" * 100) -> int:
        """Appends one batch as the leader; its first offset."""
        partition = self.partitions.find(topic, index)
        appended = partition.append(build_batch([(None, value)] * count, timestamp=now_ms()), now_ms=now_ms())
        self.waiters.notify(partition)
        if partition.needs_sync:
            self.storage.syncer.request(partition)
        return appended.first_offset


class Wire:
    """Stands for the follower's connections to the leader; may be cut."""

    def __init__(self, leader: Side) -> None:
        self.leader = leader
        self.is_cut = False
        self.fetches: list[FetchRequest] = []
        self.opened: list[Link] = []

    async def connect(self, address: Any, *, timeout_ms: int, purpose: str) -> Link:
        if self.is_cut:
            raise NotConnected("cut")
        link = Link(self)
        self.opened.append(link)
        return link

    async def ask(self, address: Any, request: Request, *, timeout_ms: int, purpose: str) -> Any:
        link = await self.connect(address, timeout_ms=timeout_ms, purpose=purpose)
        return await link.submit_now(request, version=type(request).versions[1] - 1, timeout_ms=1000)

    def cut(self) -> None:
        self.is_cut = True
        opened, self.opened = self.opened, []
        for link in opened:
            link.lose()


class Link:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._lost = False
        self._pending: list[tuple[asyncio.Future[Any], Any]] = []  # answered in order

    def version_of(self, request: type[Request]) -> int:
        return request.versions[1]

    def submit_now(self, request: Any, *, version: int, timeout_ms: int) -> asyncio.Future[Any]:
        if isinstance(request, FetchRequest):
            self._wire.fetches.append(request)
        future: asyncio.Future[Any] = self._loop.create_future()
        given: Later[Any] = Later()
        self._pending.append((future, given))
        self._loop.call_soon(self._deliver, request, version, given)
        return future

    def call_now(self, request: Any, then: Callable[[Any], None], *, version: int, timeout_ms: int) -> None:
        future = self.submit_now(request, version=version, timeout_ms=timeout_ms)
        future.add_done_callback(lambda done: then(done.exception() or done.result()))

    def read_in_place(self) -> None:
        """Every answer has bytes of its own here."""

    def _deliver(self, request: Any, version: int, given: Later[Any]) -> None:
        """A turn of the loop each way, as over a network."""
        if self._lost:
            return
        found = self._wire.leader.handle(request, version)

        def arrive(response: Any) -> None:
            given.set(_through_bytes(response, api.response_class(type(request).key), version))
            self._loop.call_soon(self._flush)

        if isinstance(found, Later):
            found.then(arrive, self.lose)
        else:
            arrive(found)

    def _flush(self) -> None:
        while self._pending and self._pending[0][1].done and not self._lost:
            future, given = self._pending.pop(0)
            given.then(future.set_result, self.lose)

    def lose(self) -> None:
        self._lost = True
        for future, _ in self._pending:
            if not future.done():
                future.set_exception(ConnectionLost("cut"))


class Pair:
    """A leader and a follower of the same partitions."""

    def __init__(self, values: dict[str, str] | None = None, follower_disks: Sequence[str] = ("data",)) -> None:
        self.state = ClusterState()
        settings = {"replica.fetch.wait.max.ms": "60000", **(values or {})}
        for node_id in (LEADER, FOLLOWER):
            self.state.apply(_registration(node_id))
        self.leader = Side(LEADER, self.state, {"data": SimDisk()}, settings)
        self.follower = Side(FOLLOWER, self.state, {name: SimDisk() for name in follower_disks}, settings)
        self.wire = Wire(self.leader)
        self.channel = Channel()
        self.follower.peers, self.follower.member.link = self.wire, self.channel
        self.replication: Replication = self.follower.replicate()
        self.replication.start(self.state)

    def apply(self, *records: Any) -> None:
        changes = [change for record in records for change in self.state.apply(record)]
        self.leader.changed(changes)
        self.follower.changed(changes)

    def create(self, topic: str = "t", partitions: int = 1, *, leader: int = LEADER, epoch: int = 0) -> None:
        self.apply(
            journal.TopicRecord(name=topic, topic_id=topic_id(topic)),
            *(
                journal.PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id(topic),
                    replicas=[LEADER, FOLLOWER],
                    isr=[LEADER, FOLLOWER],
                    removing_replicas=[],
                    adding_replicas=[],
                    leader=leader,
                    leader_epoch=epoch,
                    partition_epoch=0,
                    directories=[UNASSIGNED_DIRECTORY, UNASSIGNED_DIRECTORY],
                )
                for index in range(partitions)
            ),
        )

    def elect(self, leader: int, topic: str = "t", index: int = 0) -> None:
        self.apply(journal.PartitionChangeRecord(partition_id=index, topic_id=topic_id(topic), leader=leader))

    def configure(self, name: str, value: str, topic: str = "t") -> None:
        self.apply(journal.ConfigRecord(resource_type=2, resource_name=topic, name=name, value=value))

    async def same(self, topic: str = "t", index: int = 0) -> None:
        """Waits until the follower has what the leader has, and the leader knows."""
        partition = self.leader.partitions.find(topic, index)
        await eventually(lambda: partition.high_watermark == partition.log.next_offset, "the high watermark")
        theirs, ours = partition.log, self.follower.log(topic, index)
        assert ours.next_offset == theirs.next_offset
        assert content(ours) == content(theirs)
        assert ours.epochs.entries == theirs.epochs.entries

    async def close(self) -> None:
        await self.replication.close()


class Channel:
    """Stands for the controller: hands requests to the test's answer."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answer: Callable[[Any], Any] = _never

    async def ask(self, request: Any, **_: Any) -> Any:
        self.asked.append(request)
        found = self.answer(request)
        return await found if isinstance(found, Awaitable) else found


def content(log: Any) -> list[bytes]:
    """The bytes of all segments."""
    return [segment.file.read(0, segment.size_bytes) for segment in log.segments]


def place(topic: str, index: int = 0) -> TopicPartition:
    return TopicPartition(topic, index)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _no_commit(*_: Any) -> Any:
    raise AssertionError("no Spark reads here")


async def _wait_for_ever() -> Any:
    await asyncio.Event().wait()


def _never(_: Any) -> Any:
    return _wait_for_ever()


def _registration(node_id: int) -> journal.RegisterBrokerRecord:
    endpoint = journal.RegisterBrokerRecord.BrokerEndpoint(
        name=LISTENER, host="127.0.0.1", port=9092 + node_id, security_protocol=0
    )
    return journal.RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=bytes([node_id]) * 16,
        broker_epoch=10 + node_id,
        end_points=[endpoint],
        features=[],
        rack=None,
        fenced=False,
    )


def _through_bytes(message: Any, kind: type, version: int) -> Any:
    for topic in getattr(message, "responses", ()):
        for data in topic.partitions:
            if hasattr(data.records, "read"):
                data.records = data.records.read()
    return compile.decode(kind, version, compile.encode(message, version))
