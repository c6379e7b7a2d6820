"""One or several registries over a live broker: what is written stays, ids are given once, trouble passes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.ports import free_ports
from tests.support.processes.registry import ask, record, until

from ottla.client.admin import Admin
from ottla.client.blocking.blocking import Blocking
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.producer import Producer
from ottla.model.resources import Resource
from ottla.registry.identity import RegistryIdentity
from ottla.registry.leader import ElectionOptions, ElectionRefused, ElectionResult
from ottla.registry.service import Service, ServiceOptions
from ottla.registry.store import StoreOptions
from ottla.registry.topic import WrongTopic
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry

Make = Callable[..., Registry]
SESSION_MS = 1_500
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), {"group.min.session.timeout.ms": 100}) as broker:
        yield broker


@pytest.fixture
def make(broker: EmbeddedBroker) -> Iterator[Make]:
    """Registries that share a topic of this test's own; all are stopped at the end."""
    name = f"registry-{next(_numbers)}"
    started: list[Registry] = []

    def start(bootstrap: str = broker.bootstrap, timeout_ms: int = 10_000, port: int = 0) -> Registry:
        store = StoreOptions(name, timeout_ms=timeout_ms)
        registry = Registry(bootstrap, port, store=store, election=ElectionOptions(name, SESSION_MS))
        started.append(registry)
        return registry.start()

    yield start
    broker.heal()
    for registry in started:
        registry.stop()


def register(registry: Registry, subject: str, schema: str) -> int:
    answer = ask(registry.url, "POST", f"/subjects/{subject}/versions", {"schema": schema})
    assert answer.status == 200, answer
    found: int = answer.content["id"]
    return found


def client_id(registry: Registry) -> str:
    return registry.url.replace("http://", "ottla-registry-")


def topic_of(registry: Registry) -> str:
    return registry._options.store.topic


def test_who_is_alone_writes_at_once(tmp_path: Path) -> None:
    """A new group waits a minute for its members, and for one that was killed until its session ends: not its users."""
    settings = {"group.initial.rebalance.delay.ms": 60_000, "group.max.session.timeout.ms": 600_000}
    (port,) = free_ports(1)
    election = ElectionOptions("e", session_timeout_ms=600_000)
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        for number in (1, 2):
            one = Registry(broker.bootstrap, port, election=election).start()
            service: Any = one.service
            service._running.election._leave = _never  # as if it were killed
            assert register(one, "s", record("R", *(f"f{each}" for each in range(number)))) == number
            assert ask(one.url, "GET", "/subjects/s/versions").content == list(range(1, number + 1))
            one.stop()


def test_a_session_timeout_that_the_broker_refuses_is_told_once(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async def refused() -> None:
        store, election = StoreOptions("hasty"), ElectionOptions("hasty", session_timeout_ms=1)
        service = Service(ServiceOptions(broker.bootstrap, port=0, store=store, election=election))
        await service.start()
        try:
            async with asyncio.timeout(60):
                await service.refused()
        finally:
            await service.stop()

    with pytest.raises(ElectionRefused, match=r"refuses a session timeout of 1 ms; .*group\.min\.session\.timeout\.ms"):
        asyncio.run(refused())
    assert [each.levelname for each in caplog.records if "group hasty" in each.message] == ["ERROR"]


async def _never() -> None:
    pass


def test_followers_forward_and_read_what_they_wrote(make: Make) -> None:
    leader, *others = [make() for _ in range(3)]
    assert register(leader, "s", record("R")) == 1
    for number, follower in enumerate(others, 2):
        assert register(follower, f"s{number}", record("R", f"f{number}")) == number
        assert ask(follower.url, "GET", f"/schemas/ids/{number}").status == 200
        assert not follower.service.is_leader  # type: ignore[union-attr]
    refused = ask(others[0].url, "DELETE", "/subjects/nobody")
    assert (refused.status, refused.code) == (404, 40401)
    slash = ask(others[1].url, "POST", "/subjects/a%2Fb%20c/versions?normalize=true", {"schema": record("R")})
    assert slash.content["id"] == 1
    assert "a/b c" in ask(others[1].url, "GET", "/subjects").content


def test_the_topic_is_compacted_and_as_confluent_writes_it(broker: EmbeddedBroker, make: Make) -> None:
    one = make()
    register(one, "s", '{"type": "string"}')
    topic = topic_of(one)
    with Blocking(broker.bootstrap) as client:
        (found,) = [each for each in client.read(topic) if each.value is not None and b'"SCHEMA"' in (each.key or b"")]
    assert found.key == b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    assert found.value is not None and b'"schema":"\\"string\\""' in found.value and b'"deleted":false' in found.value

    async def settings() -> dict[str, str | None]:
        async with Admin(broker.bootstrap) as admin:
            assert (await admin.topics.describe(topic)).partition_count == 1
            return {each.name: each.value for each in await admin.configs.describe(Resource.topic(topic))}

    assert asyncio.run(settings())["cleanup.policy"] == "compact"


def test_one_schema_has_one_id_and_others_have_others(make: Make) -> None:
    """Threads and instances at once."""
    registries = [make() for _ in range(3)]
    jobs = [(registry, thread, number) for number in range(6) for thread in range(4) for registry in registries]

    def work(job: tuple[Registry, int, int]) -> tuple[str, int]:
        registry, thread, number = job
        schema = record("R", *(f"f{each}" for each in range(number + 1)))  # all ask for the same six
        own = record("R", f"own{thread}", f"n{number}", f"p{registries.index(registry)}")
        return_id = register(registry, "shared", schema)
        register(registry, f"own-{thread}", own)
        return schema, return_id

    with ThreadPoolExecutor(12) as threads:
        done = list(threads.map(work, jobs))
    assert len(set(done)) == 6, "one schema got two ids"
    dense(registries[0].url, {"shared": 6, **{f"own-{thread}": 18 for thread in range(4)}})
    ends = [ask(each.url, "GET", "/schemas").content for each in registries]
    assert ends[0] == ends[1] == ends[2]


def dense(url: str, counts: dict[str, int]) -> None:
    """Every version from 1 on is there once, and every id is one schema."""
    ids: dict[int, str] = {}
    assert sorted(ask(url, "GET", "/subjects").content) == sorted(counts)
    for subject, count in counts.items():
        assert ask(url, "GET", f"/subjects/{subject}/versions").content == list(range(1, count + 1))
    for each in ask(url, "GET", "/schemas").content:
        assert ids.setdefault(each["id"], each["schema"]) == each["schema"], f"id {each['id']} has two schemas"


def test_who_was_fenced_finds_out_and_goes_on(broker: EmbeddedBroker, make: Make) -> None:
    one = make()
    assert register(one, "s", record("R", "a")) == 1
    usurp(broker, topic_of(one))
    assert register(one, "s", record("R", "a", "b")) == 2
    dense(one.url, {"s": 2})


def usurp(broker: EmbeddedBroker, name: str) -> None:
    """Somebody else takes the transactional id."""

    async def take() -> None:
        options = ProducerOptions(transactional_id=f"{name}-{name}")
        async with Producer(broker.bootstrap, options) as producer:
            await producer.init_transactions()

    asyncio.run(take())


@pytest.mark.parametrize("api", ["EndTxn", "Produce", "InitProducerId"])
@pytest.mark.parametrize("after", [True, False], ids=["done", "not done"])
def test_a_lost_answer_is_asked_of_the_log(broker: EmbeddedBroker, make: Make, api: str, after: bool) -> None:
    """The connection breaks around each step of a change: it is made once, and its reply is the true one."""
    one = make()
    for number in range(1, 4):
        broker.fail(api, close=True, after=after, client_id=client_id(one))
        assert register(one, "s", record("R", *(f"f{each}" for each in range(number)))) == number
        broker.heal()
    dense(one.url, {"s": 3})
    broker.fail(api, close=True, after=after, client_id=client_id(one))
    assert ask(one.url, "DELETE", "/subjects/s").content == [1, 2, 3]


@pytest.mark.parametrize("error", ["INVALID_TXN_STATE", "INVALID_PRODUCER_EPOCH"])
@pytest.mark.parametrize("after", [True, False], ids=["done", "not done"])
def test_an_end_that_failed_may_have_been_one(broker: EmbeddedBroker, make: Make, error: str, after: bool) -> None:
    """The broker says no to a commit, having carried it out or not: the log says which, and so does the reply."""
    one = make()
    register(one, "before", record("R"))
    broker.fail("EndTxn", error, after=after, client_id=client_id(one))
    assert register(one, "s", record("S")) == 2
    broker.fail("EndTxn", error, after=after, client_id=client_id(one))
    assert ask(one.url, "DELETE", "/subjects/s").content == [1]  # and not that there is none
    assert register(one, "t", record("T")) == 3
    dense(one.url, {"before": 1, "t": 1})


def test_a_schema_larger_than_a_record_may_be_is_refused(make: Make) -> None:
    one = make()
    large = {"schema": '{"type":"fixed","size":1,"name":"F","doc":"%s"}' % ("x" * 1_200_000)}
    answer = ask(one.url, "POST", "/subjects/s/versions", large)
    assert (answer.status, answer.code) == (422, 42209)
    assert register(one, "s", record("R")) == 1


def test_no_leader_can_be_reached(make: Make) -> None:
    one = make(timeout_ms=300)
    service: Any = one.service
    election = service._running.election
    until(lambda: election.verdict.number >= 2)  # looked, and elected
    election.verdict = ElectionResult(99, RegistryIdentity("127.0.0.1", free_ports(1)[0]), is_self=False)
    answer = ask(one.url, "POST", "/subjects/s/versions", {"schema": record("R")})
    assert (answer.status, answer.code) == (500, 50003)
    election.verdict = ElectionResult(100, None, is_self=False)
    answer = ask(one.url, "POST", "/subjects/s/versions", {"schema": record("R")})
    assert (answer.status, answer.code) == (500, 50004)
    assert ask(one.url, "GET", "/subjects").content == []


def test_a_broker_that_comes_late_goes_and_comes_back(tmp_path: Path, make: Make) -> None:
    (port,) = free_ports(1)
    broker = EmbeddedBroker(tmp_path / "late", {"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    bootstrap = f"127.0.0.1:{port}"
    with ThreadPoolExecutor(1) as threads:
        starting = threads.submit(make, bootstrap, 500)  # returns when everything was read
        with broker:
            one = starting.result()
            until(lambda: ask(one.url, "POST", "/subjects/s/versions", {"schema": record("R")}).status == 200)
            assert register(one, "s", record("R")) == 1
        answer = ask(one.url, "POST", "/subjects/s/versions", {"schema": record("R", "b")})
        assert (answer.status, answer.code) in ((500, 50001), (500, 50002)), answer
        assert ask(one.url, "GET", "/subjects").content == ["s"]  # what is known is told
        with broker:
            until(lambda: ask(one.url, "POST", "/subjects/s/versions", {"schema": record("R", "b")}).status == 200)
            dense(one.url, {"s": 2})
            one.stop()


def test_before_the_topic_is_read_everything_is_unavailable() -> None:
    async def run() -> tuple[Any, Any]:
        service = Service(ServiceOptions(f"127.0.0.1:{free_ports(1)[0]}", port=0))
        await service.start()
        try:
            read = await asyncio.to_thread(ask, service.url, "GET", "/subjects")
            body = {"schema": '"int"'}
            return read, await asyncio.to_thread(ask, service.url, "POST", "/subjects/s/versions", body)
        finally:
            await service.stop()

    for answer in asyncio.run(run()):
        assert (answer.status, answer.code) == (500, 50001)


@pytest.mark.parametrize(
    ("partitions", "policy", "why"), [(1, "delete", "cleanup.policy=delete"), (2, "compact", "2 partitions")]
)
def test_a_topic_that_loses_schemas_is_refused(broker: EmbeddedBroker, partitions: int, policy: str, why: str) -> None:
    name = f"wrong-{policy}"

    async def create() -> None:
        async with Admin(broker.bootstrap) as admin:
            await admin.topics.create(name, partitions, configs={"cleanup.policy": policy})

    asyncio.run(create())
    registry = Registry(broker.bootstrap, store=StoreOptions(name), election=ElectionOptions(name, SESSION_MS))
    with pytest.raises(WrongTopic, match=why):
        registry.start()


def test_a_topic_made_anew_is_read_anew(broker: EmbeddedBroker, make: Make) -> None:
    one = make(timeout_ms=2_000)
    register(one, "old", record("R"))
    topic = topic_of(one)

    async def replace() -> None:
        async with Admin(broker.bootstrap) as admin:
            await admin.topics.delete(topic)
            await admin.topics.create(topic, 1, configs={"cleanup.policy": "compact"})

    asyncio.run(replace())
    until(lambda: ask(one.url, "GET", "/subjects").content == [])
    until(lambda: ask(one.url, "POST", "/subjects/new/versions", {"schema": record("R")}).status == 200)
    dense(one.url, {"new": 1})


def test_ids_are_not_given_again(tmp_path: Path) -> None:
    """Deleted for good, compacted away, broker and registry started anew: the next id is still the next."""
    quick = {
        "log.cleaner.backoff.ms": 50,
        "log.cleaner.min.cleanable.ratio": 0.01,
        "log.cleaner.delete.retention.ms": 0,
    }
    with EmbeddedBroker(tmp_path / "data", quick) as broker:
        url = broker.registry.url
        assert register(broker.registry, "other", record("O")) == 1
        for number in range(2, 5):
            assert register(broker.registry, "s", record("R", *(f"f{each}" for each in range(number)))) == number
        assert ask(url, "DELETE", "/subjects/s").content == [1, 2, 3]
        assert ask(url, "DELETE", "/subjects/s?permanent=true").content == [1, 2, 3]
        assert ask(url, "GET", "/schemas/ids/4").code == 40403
        compact(broker)
        broker.stop()
        with broker:
            assert register(broker.registry, "t", record("R", "new")) == 5


def compact(broker: EmbeddedBroker) -> None:
    """Until nothing is left of the schemas of subject `s`, not even that they are gone."""

    async def settings() -> None:
        async with Admin(broker.bootstrap) as admin:
            wanted = {"segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
            await admin.configs.set(Resource.topic("_schemas"), wanted)

    asyncio.run(settings())
    levels = itertools.cycle(["NONE", "FULL"])

    def is_gone() -> bool:
        # What is written last is never compacted, so something else has to come behind it.
        assert ask(broker.registry.url, "PUT", "/config/other", {"compatibility": next(levels)}).status == 200
        broker.clock.advance("1m")
        with Blocking(broker.bootstrap) as client:
            return not any(b'"SCHEMA","subject":"s"' in (each.key or b"") for each in client.read("_schemas"))

    until(is_gone, what="compaction")
