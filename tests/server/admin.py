"""A node without sockets: metadata and partitions on a disk in memory, and requests handed to their handlers.

Every answer goes through its bytes in the version asked for, so a field that a version cannot carry shows.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, TypeVar

from tests.server.storages import facades_of, storage_of

from ottla.cluster.commands.create_topics import CreateTopics, TopicToCreate
from ottla.log.files import checkpoint
from ottla.machine.stepped import in_one_go
from ottla.model.errors import ApiError
from ottla.records.build import build_batch
from ottla.server.api import dispatch
from ottla.server.api.context import Context, Peer
from ottla.server.api.outcomes import handle_as_controller
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.peers.peers import Peers
from ottla.server.quorum.not_controller import NotController
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.security.authorization import Authorization
from ottla.server.settings.configs import Configs
from ottla.server.storage.directories import open_directories
from ottla.sim.world.disk import SimDisk
from ottla.wire import api, compile
from ottla.wire.message import Request, Response

ResponseT = TypeVar("ResponseT", bound=Response)
DIALLED = ("127.0.0.1", 9092)


class StillLoop:
    """A loop that never runs: a sole voter does everything in the call that asks for it."""

    def time(self) -> float:
        return 0.0

    def call_at(self, when: float, callback: Any, *args: Any) -> Any:
        return SimpleNamespace(cancel=lambda: None)

    call_later = call_at

    def create_task(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Done before it returns."""
        done: Future[Any] = Future()
        done.set_result(asyncio.run(work))
        return done

    def run_in_executor(self, executor: Any, work: Any, *args: Any) -> Any:
        """For a test that runs a loop of its own."""
        return asyncio.get_running_loop().run_in_executor(executor, work, *args)


class Admin:
    def __init__(
        self,
        disks: Mapping[str, SimDisk] | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        advertised: tuple[str, int] | None = None,
        seed: int = 1,
    ) -> None:
        dispatch.load_handlers()
        self.disks = dict(disks or {"data": SimDisk()})
        self.now_ms = 1_700_000_000_000
        values = {"node.id": "1", "log.dirs": ",".join(self.disks), **(properties or {})}
        self.configs = Configs(values)
        self.directories = open_directories(self.configs.log_dirs(), self.disks.__getitem__)
        self.loop: Any = StillLoop()
        self.runtime = Runtime(self.loop, now_ms=lambda: self.now_ms, rng=random.Random(seed))
        self._start(advertised)

    def _start(self, advertised: tuple[str, int] | None) -> None:
        self.member = QuorumMember(self.runtime, self.configs, self.directories, Peers("admin"), self._handle_here)
        self.member.start_alone()
        self.host = self.member.metadata
        self.configs.follow(self.host.state)
        self.storage = storage_of(self.runtime, self.configs, self.directories)
        self.partitions = self.storage.partitions
        in_one_go(self.storage.changes.loading(self.host.state))
        self.changes: list[Any] = []
        self.host.changes.add(self._changed)
        self.facades = facades_of(
            self.runtime,
            configs=self.configs,
            storage=self.storage,
            member=self.member,
            authorization=Authorization(self.configs.broker),
            advertised=lambda listener: advertised,
        )
        self.context = Context(self.facades, Peer("PLAINTEXT", DIALLED, ("127.0.0.1", 50_000)))

    async def _handle_here(self, request: Request[ResponseT]) -> ResponseT | NotController:
        return await handle_as_controller(self.facades, request)

    def _changed(self, changes: list[Any]) -> None:
        self.changes.extend(changes)
        self.configs.forget()
        in_one_go(self.storage.changes.following(changes))

    def ask(self, request: Request, version: int | None = None) -> Any:
        """The answer in `version`, or in the highest one served."""
        key = type(request).key
        version = dispatch.ENDPOINTS[key].high if version is None else version
        asked = compile.decode(type(request), version, compile.encode(request, version))
        route = dispatch.ROUTES.find(key, version)
        assert route is not None, f"{type(request).__name__} v{version} is not served"
        self.context.request_version = version
        answer: Any = route.handler(asked, self.context)
        if asyncio.iscoroutine(answer):
            answer = asyncio.run(answer)
        elif isinstance(answer, Later):
            answer = answer.taken()
        return compile.decode(api.response_class(key), version, compile.encode(answer, version))

    def submit(self, command: Any) -> Any:
        """Have a command carried out; its reply, or ApiError."""
        reply = self.member.controller.submit(command).taken()
        if isinstance(reply, ApiError):
            raise reply
        return reply

    def next_producer_id(self) -> int:
        return self.member.producer_ids.next_producer_id()

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        settings = tuple((key.replace("_", "."), value) for key, value in configs.items())
        (outcome,) = self.submit(CreateTopics((TopicToCreate(name, partitions, 1, configs=settings),)))
        assert outcome.error is None, outcome.error

    def write(self, count: int, producer_id: int = -1) -> None:
        """Appends one batch of `count` records to t-0."""
        batch = build_batch(
            [(b"k", b"v")] * count,
            timestamp=self.now_ms,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
        )
        self.partitions.find("t", 0).append(batch, now_ms=self.now_ms)

    def stop(self) -> Mapping[str, SimDisk]:
        """A clean stop; the disks for the next start."""
        self.member.close()
        self.storage.close()
        assert all(disk.exists(checkpoint.CLEAN_SHUTDOWN) for disk in self.disks.values())
        return self.disks
