"""Registries as processes, killed and frozen in the middle of registrations: what was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.processes.brisk import brisk
from tests.support.processes.node import OttlaNode
from tests.support.processes.registry import Answer, RegistryProcess, ask, record, until

from ottla.client.admin import Admin
from ottla.client.coordinator import CoordinatorKind, call_once
from ottla.registry.identity import read_elected
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest

SESSION = ("--session-timeout", "1500ms")
THREADS = 4
_loads = itertools.count()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    node = brisk("ottla", tmp_path_factory.mktemp("node"))
    assert isinstance(node, OttlaNode)
    try:
        yield node.start()
    finally:
        node.kill()


@pytest.fixture(scope="module")
def registries(tmp_path_factory: pytest.TempPathFactory, node: OttlaNode) -> Iterator[list[RegistryProcess]]:
    directory = tmp_path_factory.mktemp("registries")
    started = [RegistryProcess(directory, node.bootstrap, *SESSION).launch() for _ in range(3)]
    try:
        yield [each.ready() for each in started]
    finally:
        for each in started:
            each.kill()


class Load:
    """Threads that register, each through all instances in turn, until told to stop; what was acknowledged is kept."""

    def __init__(self, registries: list[RegistryProcess]) -> None:
        self.acknowledged: list[tuple[str, str, int]] = []  # subject, schema, id
        self.gone: list[tuple[str, str, int]] = []  # those that were deleted for good, if the request arrived
        self._registries = registries
        self._tag = f"l{next(_loads)}"
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def _run(self, thread: int) -> None:
        number = 0
        while not self._done.is_set():
            number += 1
            url = self._registries[(thread + number) % len(self._registries)].url
            # Every third schema is the same for all threads, and all threads share a subject.
            name = f"{self._tag}n{number}" if number % 3 == 0 else f"{self._tag}t{thread}n{number}"
            for subject in ("shared", f"own{thread}"):
                self._register(url, subject, record("R", name), self.acknowledged)
            if thread == 0:
                self._register(url, f"gone{number}", record("Gone", name), self.gone)
                for permanent in ("", "?permanent=true"):
                    self._ask(url, "DELETE", f"/subjects/gone{number}{permanent}")

    def _register(self, url: str, subject: str, schema: str, kept: list[tuple[str, str, int]]) -> None:
        answer = self._ask(url, "POST", f"/subjects/{subject}/versions", {"schema": schema})
        if answer is not None and answer.status == 200:
            kept.append((subject, schema, answer.content["id"]))

    def _ask(self, url: str, method: str, path: str, body: dict[str, str] | None = None) -> Answer | None:
        try:
            return ask(url, method, path, body)
        except (OSError, http.client.HTTPException):
            return None  # it is gone, or was killed before it could answer

    def wait_for(self, more: int) -> None:
        wanted = len(self.acknowledged) + more
        until(lambda: len(self.acknowledged) >= wanted, 60, f"{more} more registrations")

    def stop(self) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()


def check(url: str, load: Load) -> None:
    """All that was acknowledged is there under its id; versions are dense; no schema has two ids, and no id ever had
    two schemas, those that are gone included."""
    acknowledged = [(subject, schema.replace(" ", ""), number) for subject, schema, number in load.acknowledged]

    def read() -> list[dict[str, Any]] | None:
        # An instance may still have to read what another one acknowledged a moment ago.
        found: list[dict[str, Any]] = ask(url, "GET", "/schemas").content
        present = {(each["subject"], each["schema"], each["id"]) for each in found}
        return found if present.issuperset(acknowledged) else None

    found = until(read, what="all that was acknowledged")
    assert found is not None
    by_id: dict[int, str] = {}
    by_schema: dict[str, int] = {}
    versions: dict[str, list[int]] = {}
    present = [(each["subject"], each["schema"], each["id"]) for each in found]
    gone = [(subject, schema.replace(" ", ""), number) for subject, schema, number in load.gone]
    assert gone
    for _, schema, number in [*present, *acknowledged, *gone]:
        assert by_id.setdefault(number, schema) == schema, f"id {number} was given twice"
    for _, schema, number in present:
        assert by_schema.setdefault(schema, number) == number, f"a schema has two ids: {schema}"
    for each in found:
        versions.setdefault(each["subject"], []).append(each["version"])
    for subject, numbers in versions.items():
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), f"versions of {subject}: {sorted(numbers)}"


def leader_of(registries: list[RegistryProcess], node: OttlaNode) -> int:
    """Asks the group: its assignment names the leader."""

    async def find() -> str:
        async with Admin(node.bootstrap) as admin:
            request = DescribeGroupsRequest(groups=["schema-registry"])
            answer = await call_once(admin.cluster, "schema-registry", CoordinatorKind.GROUP, request, lambda _: 0)
        group = answer.groups[0]
        if group.group_state != "Stable":
            return ""
        elected = read_elected(group.members[0].member_assignment)
        return elected.identity.url if elected.identity is not None else ""

    def there() -> str:
        url = asyncio.run(find())
        return url if url in [each.url for each in registries] else ""

    url = until(there, what="the election")
    return next(index for index, each in enumerate(registries) if each.url == url)


@pytest.mark.slow
def test_the_leader_is_killed_again_and_again(registries: list[RegistryProcess], node: OttlaNode) -> None:
    load = Load(registries)
    try:
        for _ in range(2):
            load.wait_for(40)
            dead = leader_of(registries, node)
            registries[dead].kill()
            load.wait_for(40)  # another one leads
            registries[dead].start()
    finally:
        load.stop()
    for each in registries:
        check(each.url, load)


def test_a_leader_that_was_frozen_does_not_write_when_it_wakes(
    registries: list[RegistryProcess], node: OttlaNode
) -> None:
    load = Load(registries)
    try:
        load.wait_for(20)
        frozen = leader_of(registries, node)
        registries[frozen].freeze()
        until(lambda: leader_of(registries, node) != frozen, what="another leader")
        awake = [each for index, each in enumerate(registries) if index != frozen]
        made = ask(awake[0].url, "POST", "/subjects/other/versions", {"schema": record("Other")})
        assert made.status == 200, made
        load.acknowledged.append(("other", record("Other"), made.content["id"]))
        registries[frozen].thaw()
        load.wait_for(40)
    finally:
        registries[frozen].thaw()
        load.stop()
    for each in registries:
        check(each.url, load)


def test_the_broker_is_killed(registries: list[RegistryProcess], node: OttlaNode) -> None:
    load = Load(registries)
    try:
        for _ in range(2):
            load.wait_for(30)
            node.kill()
            time.sleep(0.2)
            node.start()
        load.wait_for(30)
    finally:
        load.stop()
    for each in registries:
        until(lambda url=each.url: ask(url, "POST", "/subjects/end/versions", {"schema": record("E")}).status == 200)
        check(each.url, load)
