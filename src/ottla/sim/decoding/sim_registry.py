"""The instances of a schema registry, which of them answer, and what goes wrong with an answer.

HTTP is left out. A registration is passed to an instance as the routes would; a lookup uses the real client
(`client.registry`) in a worker, which asks one instance after the other and retries.
"""

from __future__ import annotations

import asyncio
import errno
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from ottla.client.cluster import Cluster
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.log.files.disk import StorageError
from ottla.registry.identity import RegistryIdentity, client_id_of
from ottla.registry.leader import ElectionOptions, RegistryElection
from ottla.registry.port import Unavailable
from ottla.registry.security.instances import Instances
from ottla.registry.store import StoreOptions, TopicStore
from ottla.schemas.registry import lookups
from ottla.schemas.registry.commands import Register
from ottla.schemas.registry.entities import SchemaDraft
from ottla.schemas.registry.machine import RegistryMachine
from ottla.sim.decoding.check import DecodingBook
from ottla.sim.process import WorkloadStage
from ottla.sim.world.loop import HOST, SimHost, SimLoop

REGISTER_SECONDS_MAX = 25.0
_STORE = StoreOptions("_schemas", 1, timeout_ms=6_000)
_ELECTION = ElectionOptions("registry", session_timeout_ms=6_000, rebalance_timeout_ms=8_000)


class ApplyFailed(StorageError):
    """A random failure to apply a record; the story of a run may show its traceback."""


class NoAnswer(OSError):
    """There was no answer in time, or none at all."""


def schema_text(field: str) -> str:
    """Return a schema that differs from all others in its field."""
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": field, "type": "string"}]})


def field_of(text: str) -> str:
    field: str = json.loads(text)["fields"][0]["name"]
    return field


class _Store(TopicStore):
    """A store that fails at the next record if told to, and then has to read its topic again."""

    fails_next = False

    def _apply(self, machine: RegistryMachine, record: ConsumedRecord) -> None:
        if self.fails_next:
            self.fails_next = False
            raise ApplyFailed(errno.EIO, "out of memory")
        super()._apply(machine, record)


@dataclass(slots=True)
class _Life:
    """One process of an instance."""

    name: str
    store: _Store
    host: SimHost


class SimRegistry:
    """All instances; see the module. `lookup_fault` is called before each lookup and may raise or return an answer."""

    def __init__(self, stage: WorkloadStage, book: DecodingBook, instances: int) -> None:
        self._stage = stage
        self._book = book
        self.identities = [RegistryIdentity(f"registry-{number}", 8081) for number in range(instances)]
        self._lives: dict[int, _Life] = {}
        self._born = 0
        self.lookup_fault: Callable[[], tuple[int, str] | None] = lambda: None

    # -- instances

    async def run(self, number: int) -> None:
        """Run one life of an instance; it ends only by cancellation."""
        identity = self.identities[number]
        rng = self._stage.stream(f"registry {number} {self._born}")
        cluster = Cluster(self._stage.around.options(client_id_of(identity), rng))
        election = RegistryElection(cluster, identity, _ELECTION)
        store = _Store(cluster, election, _ELECTION.group_id, _STORE, Instances(cluster.options.now_ms))
        host = HOST.get()
        assert host is not None
        self._born += 1
        life = self._lives[number] = _Life(f"{host.name} (life {self._born})", store, host)
        store.start()
        election.start()
        try:
            await asyncio.Event().wait()
        finally:
            if self._lives.get(number) is life:
                del self._lives[number]
            await election.stop()
            await store.stop()
            await cluster.close()

    def crashed(self, number: int) -> None:
        self._lives.pop(number, None)

    def fail_next_record(self, number: int) -> None:
        """Make the instance fail at the next record."""
        if number in self._lives:
            self._lives[number].store.fails_next = True

    async def ready(self, number: int) -> None:
        """Wait until an instance has read its whole topic once."""
        await self._lives[number].store.loaded()

    # -- clients

    async def register(self, number: int, field: str) -> int:
        """Register a schema; return its id. Raises NoAnswer, NotLeader, Unavailable."""
        life = self._lives.get(number)
        if life is None or not life.host.alive:
            raise NoAnswer("nobody listens")
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        answer = loop.task_of(
            life.host, life.store.submit(Register(f"subject-{field}", SchemaDraft(schema_text(field))))
        )
        done, _ = await asyncio.wait([answer], timeout=REGISTER_SECONDS_MAX)
        if not done:
            answer.cancel()
            raise NoAnswer("no answer in time")
        schema_id: int = answer.result().id
        self._book.registered(schema_id, field)
        return schema_id

    def look_up(self, url: str, schema_id: int) -> tuple[int, str]:
        """Return the status and the text of an answer."""
        identity = urlsplit(url).hostname
        number = next(number for number, each in enumerate(self.identities) if each.host == identity)
        life = self._lives.get(number)
        if life is None or not life.host.alive or life.host.paused:
            raise NoAnswer("nobody listens")
        wrong = self.lookup_fault()
        if wrong is not None:
            return wrong
        try:
            found = lookups.with_id(life.store.state, schema_id, None)
        except Unavailable as error:
            return 500, _refusal(50001, str(error))
        self._book.looked_up(life.name, schema_id, None if found is None else field_of(found.text))
        if found is None:
            return 404, _refusal(40403, f"Schema {schema_id} not found")
        return 200, json.dumps({"schema": found.text})

    def client(self) -> SchemaRegistry:
        urls = [each.url for each in self.identities]
        return _Client(self, RegistryOptions.of(",".join(urls), attempts=2))


class _Client(SchemaRegistry):
    """The real client, over the simulated instances. It runs in a worker, which may block."""

    def __init__(self, registry: SimRegistry, options: RegistryOptions) -> None:
        super().__init__(options)
        self._registry = registry

    def _exchange(self, url: str, method: str, path: str, body: bytes | None) -> tuple[int, str, bytes]:
        status, text = self._registry.look_up(url, int(path.removeprefix("/schemas/ids/")))
        return status, "", text.encode()

    def _pause(self, seconds: float) -> None:
        """Do nothing: virtual time does not advance within a step."""


def _refusal(code: int, message: str) -> str:
    return json.dumps({"error_code": code, "message": message})


class LookupFaults:
    """Makes some lookups fail or time out, and makes instances read their topic again, slowly."""

    def __init__(self, registry: SimRegistry, slow_down: Callable[[str], None], rng: random.Random) -> None:
        """`slow_down` delays the next fetches of a client."""
        self._registry = registry
        self._slow_down = slow_down
        self._rng = rng
        self.lookups = 0
        self._left = 0

    async def run(self) -> None:
        self._registry.lookup_fault = self._meet
        try:
            while True:
                await asyncio.sleep(self._rng.uniform(0.5, 4.0))
                self._left = self._rng.choice((0, 1, 4, 12))
                if self._rng.random() < 0.5:
                    number = self._rng.randrange(len(self._registry.identities))
                    self._registry.fail_next_record(number)
                    self._slow_down(client_id_of(self._registry.identities[number]))
        finally:
            self._registry.lookup_fault = lambda: None

    def _meet(self) -> tuple[int, str] | None:
        if not self._left:
            return None
        self._left -= 1
        self.lookups += 1
        if self._rng.random() < 0.5:
            raise NoAnswer("no answer in time")
        return self._rng.choice(((503, ""), (500, _refusal(50001, "the topic cannot be read")), (429, "")))
