"""Registries as processes, killed and frozen in the middle of registrations: what was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.brisk import brisk
from tests.support.node import OttlaNode
from tests.support.registry import RegistryProcess, ask, record, until

from ottla.client.admin import Admin
from ottla.client.coordinator import CoordinatorKind, call_once
from ottla.registry.identity import read_elected
from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

SESSION = ("--session-timeout", "1500ms")
THREADS = 4


@pytest.fixture
def node(tmp_path: Path) -> Iterator[OttlaNode]:
    node = brisk("ottla", tmp_path / "node")
    assert isinstance(node, OttlaNode)
    try:
        yield node.start()
    finally:
        node.kill()


@pytest.fixture
def registries(tmp_path: Path, node: OttlaNode) -> Iterator[list[RegistryProcess]]:
    started = [RegistryProcess(tmp_path, node.bootstrap, *SESSION).launch() for _ in range(3)]
    try:
        yield [each.ready() for each in started]
    finally:
        for each in started:
            each.kill()


class Load:
    """Threads that register, each through all instances in turn, until told to stop; what was acknowledged is kept."""

    def __init__(self, registries: list[RegistryProcess]) -> None:
        self.acknowledged: list[tuple[str, str, int]] = []  # subject, schema, id
        self._registries = registries
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def _run(self, thread: int) -> None:
        number = 0
        while not self._done.is_set():
            number += 1
            # Every third schema is the same for all threads, and all threads share a subject.
            name = f"n{number}" if number % 3 == 0 else f"t{thread}n{number}"
            for subject in ("shared", f"own{thread}"):
                schema = record("R", name)
                url = self._registries[(thread + number) % len(self._registries)].url
                try:
                    answer = ask(url, "POST", f"/subjects/{subject}/versions", {"schema": schema})
                except (OSError, http.client.HTTPException):
                    continue  # it is gone, or was killed before it could answer
                if answer.status == 200:
                    self.acknowledged.append((subject, schema, answer.content["id"]))

    def wait_for(self, more: int) -> None:
        wanted = len(self.acknowledged) + more
        until(lambda: len(self.acknowledged) >= wanted, 60, f"{more} more registrations")

    def stop(self) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()


def check(url: str, acknowledged: list[tuple[str, str, int]]) -> None:
    """All that was acknowledged is there under its id; no id has two schemas, no schema two ids; versions are dense."""
    found = ask(url, "GET", "/schemas").content
    by_id: dict[int, str] = {}
    by_schema: dict[str, int] = {}
    versions: dict[str, list[int]] = {}
    there: set[tuple[str, str, int]] = set()
    for each in found:
        text = each["schema"]
        assert by_id.setdefault(each["id"], text) == text, f"id {each['id']} was given twice"
        assert by_schema.setdefault(text, each["id"]) == each["id"], f"a schema has two ids: {text}"
        versions.setdefault(each["subject"], []).append(each["version"])
        there.add((each["subject"], text, each["id"]))
    for subject, numbers in versions.items():
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), f"versions of {subject}: {sorted(numbers)}"
    spelled = {(subject, schema.replace(" ", ""), number) for subject, schema, number in acknowledged}
    assert spelled <= there, f"lost: {sorted(spelled - there)[:5]}"


def leader_of(registries: list[RegistryProcess], node: OttlaNode) -> int:
    """Asks the group: its assignment names the leader."""

    async def find() -> str:
        async with Admin(node.bootstrap) as admin:
            request = DescribeGroupsRequest(groups=["schema-registry"])
            answer = await call_once(
                admin.cluster, "schema-registry", CoordinatorKind.GROUP, request, DescribeGroupsResponse, lambda _: 0
            )
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
        check(each.url, load.acknowledged)


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
        registries[frozen].thaw()
        load.wait_for(40)
    finally:
        registries[frozen].thaw()
        load.stop()
    for each in registries:
        check(each.url, [*load.acknowledged, ("other", record("Other"), made.content["id"])])


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
        check(each.url, load.acknowledged)
