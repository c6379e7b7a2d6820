"""Our registry over a real Kafka: what it writes there, who leads, who takes over."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.processes.kafka import RealKafka
from tests.support.processes.registry import ask, record

from ottla.client.blocking.blocking import Blocking
from ottla.registry.leader import ElectionOptions
from ottla.registry.store import StoreOptions
from ottla.testing.registry import Registry

TOPIC = "registry-schemas"


@pytest.fixture
def registries(real_kafka: RealKafka) -> Iterator[list[Registry]]:
    store, election = StoreOptions(TOPIC), ElectionOptions("registry-group")
    found = [Registry(real_kafka.bootstrap, store=store, election=election).start() for _ in range(2)]
    yield found
    for each in found:
        each.stop()


def test_two_registries_over_a_real_kafka(registries: list[Registry], real_kafka: RealKafka) -> None:
    """Both write as one, and the one that is left takes over; who leads is decided by Kafka, at a time of its own."""
    first, second = registries
    assert ask(first.url, "POST", "/subjects/s/versions", {"schema": record("R")}).content["id"] == 1
    jobs = [(each, f"f{number}") for number in range(4) for each in registries]

    def register(job: tuple[Registry, str]) -> tuple[str, int]:
        answer = ask(job[0].url, "POST", "/subjects/s/versions", {"schema": record("R", job[1])})
        assert answer.status == 200, answer
        return job[1], answer.content["id"]

    with ThreadPoolExecutor(4) as threads:
        given = list(threads.map(register, jobs))
    assert sorted(set(given), key=lambda each: each[1])[-1][1] == 5 and len(set(given)) == 4
    assert ask(second.url, "GET", "/subjects/s/versions").content == [1, 2, 3, 4, 5]
    leader, follower = sorted(registries, key=lambda each: not each.service or not each.service.is_leader)
    leader.stop()  # leaves the group, so the other takes over
    answer = ask(follower.url, "POST", "/subjects/t/versions", {"schema": record("T")})
    assert answer.content.get("id") == 6, answer
    assert ask(follower.url, "DELETE", "/subjects/t").content == [1]
    with Blocking(real_kafka.bootstrap) as client:
        keys = [
            each.key for each in client.read(TOPIC) if each.key and b"NOOP" not in each.key
        ]  # claims of leaders aside
    assert keys[0] == b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    assert keys[-1] == b'{"keytype":"DELETE_SUBJECT","subject":"t","magic":0}'
