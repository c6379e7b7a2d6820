"""Floods of wrong passwords: whoever has the right one is served, and the flood is told to come back later."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.registry.security.web import USERS, secure_broker, store_settings
from tests.server.security.secured import Certificates

from ottla.model import limits
from ottla.registry.leader import ElectionOptions
from ottla.registry.security.passwords import ConfirmedPasswords
from ottla.registry.store import StoreOptions
from ottla.testing.registry import Registry
from ottla.web.password_turns import PasswordTurns, TooBusy

FLOOD, GOOD = "127.0.0.2", "127.0.0.3"
ATTACKERS = 2 * (limits.PASSWORD_CHECKS_PER_HOST_MAX + limits.PASSWORD_CHECKS_WAITING_PER_HOST_MAX)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    certificates = Certificates.make(tmp_path_factory.mktemp("certificates"))
    asks = {"authentication.method": "BASIC", "connection.failed.authentication.delay.ms": "500"}
    with secure_broker(Path(tmp_path_factory.mktemp("broker")), certificates) as broker:
        started = Registry(
            broker.bootstrap,
            store=StoreOptions("floods"),
            election=ElectionOptions("floods", session_timeout_ms=1_500),
            settings=store_settings(certificates) | asks,
        )
        yield started.start()
        started.stop()


async def ask(registry: Registry, address: str, user: str, password: str) -> tuple[int, str]:
    """Ask for the subjects from an address of this machine; return the status and the head of the answer."""
    to = urlsplit(registry.url)
    reader, writer = await asyncio.open_connection(to.hostname, to.port, local_addr=(address, 0))
    try:
        credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
        head = f"GET /subjects HTTP/1.1\r\nHost: h\r\nAuthorization: Basic {credentials}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        answer = (await reader.read()).decode()
        return int(answer.split()[1]), answer.partition("\r\n\r\n")[0].lower()
    finally:
        writer.close()


async def floods(registry: Registry, seen: Counter[int], heads: list[str], full: asyncio.Event) -> None:
    """Send wrong passwords of alice without a pause, over very many connections, until it is cancelled.

    `full` is set when some are refused and some are told to come back.
    """

    async def attack(number: int) -> None:
        times = 0
        while True:
            status, head = await ask(registry, FLOOD, "alice", f"wrong-{number}-{times}")
            seen[status] += 1
            if seen[401] and seen[503]:
                full.set()
            times += 1
            if status == 503:
                heads.append(head)

    async with asyncio.TaskGroup() as group:
        for number in range(ATTACKERS):
            group.create_task(attack(number))


async def beside_a_flood(registry: Registry, address: str) -> tuple[list[int], Counter[int], list[str]]:
    """Return how right passwords from an address fare while another sends wrong ones, and how the latter do."""
    seen: Counter[int] = Counter()
    heads: list[str] = []
    full = asyncio.Event()
    flood = asyncio.create_task(floods(registry, seen, heads, full))
    await full.wait()
    good = [(await ask(registry, address, user, USERS[user]))[0] for user in ["alice", "bob"] * 3]
    flood.cancel()
    await asyncio.wait([flood])
    return good, seen, heads


def test_right_passwords_from_another_address_are_all_served(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PASSWORD_CONFIRMED_MS", 0)  # a broker is asked each time
    good, seen, heads = asyncio.run(beside_a_flood(registry, GOOD))
    assert good == [200] * 6
    assert set(seen) == {401, 503}
    assert all(f"retry-after: {limits.PASSWORD_RETRY_AFTER_S}" in head for head in heads)


def test_a_confirmed_password_outlives_wrong_ones_from_the_same_address(registry: Registry) -> None:
    async def confirmed_before() -> list[int]:
        first = [(await ask(registry, GOOD, user, USERS[user]))[0] for user in ("alice", "bob")]
        return first + (await beside_a_flood(registry, FLOOD))[0]

    assert asyncio.run(confirmed_before()) == [200] * 8


def test_only_the_confirmed_password_itself_is_forgotten() -> None:
    confirmed = ConfirmedPasswords(lambda: 0.0)
    confirmed.add("alice", "right")
    confirmed.drop("alice", "wrong")
    assert confirmed.has("alice", "right")
    confirmed.drop("alice", "right")
    assert not confirmed.has("alice", "right")


class Turns:
    """Users who wait for turns, and those who have one."""

    def __init__(self) -> None:
        self.turns = PasswordTurns()
        self.served: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.ends: dict[str, asyncio.Event] = {}

    async def come(self, host: str, user: str, name: str) -> None:
        self.ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._use(host, user, name))
        await settle()

    async def _use(self, host: str, user: str, name: str) -> None:
        async with self.turns.turn(host, user):
            self.served.append(name)
            await self.ends[name].wait()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_addresses_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PASSWORD_CHECKS_AT_ONCE_MAX", 2)
    monkeypatch.setattr(limits, "PASSWORD_CHECKS_PER_HOST_MAX", 2)

    async def run() -> None:
        turns = Turns()
        for number in range(6):
            await turns.come("a", f"u{number}", f"a{number}")
        await turns.come("b", "u", "b0")
        await turns.come("b", "v", "b1")
        assert turns.served == ["a0", "a1"]
        turns.tasks["a2"].cancel()  # it waits
        turns.tasks["a0"].cancel()  # it has a turn
        await settle()
        await turns.end("a1")
        await turns.end("a3")
        assert turns.served == ["a0", "a1", "a3", "b0", "a4"]
        await turns.end("b0")
        assert turns.served[5:] == ["b1"]
        for name in ("a4", "b1", "a5"):
            await turns.end(name)
        assert turns.served[6:] == ["a5"]
        assert not (turns.turns._queues or turns.turns._waiting or turns.turns._under_way or turns.turns._of_user)

    asyncio.run(run())


def test_one_address_and_one_user_leave_turns_for_others() -> None:
    async def run() -> None:
        turns = Turns()
        for number in range(limits.PASSWORD_CHECKS_PER_HOST_MAX + 1):
            await turns.come("a", f"u{number}", f"a{number}")
        assert len(turns.served) == limits.PASSWORD_CHECKS_PER_HOST_MAX
        for number in range(limits.PASSWORD_CHECKS_PER_USER_MAX + 1):
            await turns.come(f"b{number}", "alice", f"b{number}")
        assert len(turns.served) == limits.PASSWORD_CHECKS_PER_HOST_MAX + limits.PASSWORD_CHECKS_PER_USER_MAX
        await turns.come("c", "bob", "c")
        assert turns.served[-1] == "c"
        for task in turns.tasks.values():
            task.cancel()

    asyncio.run(run())


def test_the_longest_queue_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PASSWORD_CHECKS_AT_ONCE_MAX", 0)
    monkeypatch.setattr(limits, "PASSWORD_CHECKS_WAITING_MAX", 3)
    monkeypatch.setattr(limits, "PASSWORD_CHECKS_WAITING_PER_HOST_MAX", 3)

    async def run() -> None:
        turns = Turns()
        for number in range(3):
            await turns.come("a", "u", f"a{number}")
        await turns.come("b", "u", "b")
        with pytest.raises(TooBusy):
            await turns.tasks["a2"]
        await turns.come("b", "u", "b1")  # its queue would be as long as the longest
        with pytest.raises(TooBusy):
            await turns.tasks["b1"]
        assert [name for name, task in turns.tasks.items() if not task.done()] == ["a0", "a1", "b"]
        for task in turns.tasks.values():
            task.cancel()

    asyncio.run(run())
