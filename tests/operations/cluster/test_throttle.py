"""Throttles that outlive their command: the next one on the same topic knows them as ours, and takes them off."""

import asyncio
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry
from ottla.client.errors import NotConnected
from ottla.client.outcomes import Outcomes
from ottla.cluster.balance.loads import ReplicaMove
from ottla.model.ids import TopicPartition
from ottla.model.resources import ConfigSource, Resource
from ottla.model.setting import SettingKind
from ottla.operations.cluster.throttle import NOTHING, Throttles, find, slow_down, take_off

BROKERS = (1, 2, 3, 5)
SOURCES, TARGETS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
TOPIC = Resource.topic("t")


class Settings:
    """The settings of a cluster in memory, as `Admin.configs` shows them."""

    def __init__(self) -> None:
        self.values: dict[Resource, dict[str, str]] = {}
        self.away: set[Resource] = set()

    async def describe_each(
        self, resources: Iterable[Resource], names: Iterable[str]
    ) -> Outcomes[Resource, list[ConfigEntry]]:
        return Outcomes({each: await self.describe(each, names) for each in resources})

    async def describe(self, resource: Resource, names: Iterable[str]) -> list[ConfigEntry]:
        if resource in self.away:
            raise NotConnected("away")
        own = self.values.get(resource, {})
        return [
            ConfigEntry(
                name,
                own.get(name),
                ConfigSource.TOPIC if name in own else ConfigSource.DEFAULT,
                SettingKind.STRING,
                is_read_only=False,
                is_sensitive=False,
                documentation=None,
                synonyms=(),
            )
            for name in names
        ]

    async def set(self, resource: Resource, values: Mapping[str, str | None]) -> None:
        if resource in self.away:
            raise NotConnected("away")
        own = self.values.pop(resource, {}) | values
        if kept := {name: value for name, value in own.items() if value is not None}:
            self.values[resource] = kept


def cluster(settings: Settings) -> Admin:
    async def names() -> list[str]:
        return ["t"]

    async def describe(fenced: bool) -> Any:
        return SimpleNamespace(brokers=[SimpleNamespace(node_id=each, is_fenced=False) for each in BROKERS])

    found = SimpleNamespace(
        configs=settings,
        topics=SimpleNamespace(names=names),
        nodes=SimpleNamespace(describe=describe),
        cluster=SimpleNamespace(metadata=SimpleNamespace(brokers=dict.fromkeys(BROKERS))),
    )
    return cast(Admin, found)


def move(partition: int, before: tuple[int, ...], after: tuple[int, ...]) -> ReplicaMove:
    return ReplicaMove(TopicPartition("t", partition), before, after, 100)


def test_what_a_killed_command_left_on_a_topic_stays_ours() -> None:
    """The next command on the topic used to overwrite its mark: the rate of broker 5 was nobody's, for good."""

    async def test() -> None:
        settings = Settings()
        admin = cluster(settings)
        await slow_down(admin, [move(0, (1,), (5,))], 1000)  # killed here
        known = await slow_down(admin, [move(0, (1,), (2,))], 1000)
        assert known == Throttles({"t": (1, 2, 5)}, (1, 2), ())
        assert await find(admin) == Throttles({"t": (1, 2, 5)}, (1, 2, 5), ())
        await take_off(admin, known)
        assert settings.values == {} and await find(admin) == NOTHING

    asyncio.run(test())


def test_a_move_of_a_killed_command_stays_throttled_beside_another() -> None:
    async def test() -> None:
        settings = Settings()
        admin = cluster(settings)
        await slow_down(admin, [move(0, (1,), (5,))], 1000)
        await slow_down(admin, [move(1, (1,), (2,))], 1000)
        listed = settings.values[TOPIC]
        assert listed[SOURCES].split(",")[0] == "0:1" and "1:1" in listed[SOURCES].split(",")
        assert listed[TARGETS] == "0:5,1:2"

    asyncio.run(test())


def test_the_mark_of_a_broker_that_is_away_stays_with_its_rate() -> None:
    async def test() -> None:
        settings = Settings()
        admin = cluster(settings)
        await slow_down(admin, [move(0, (1,), (5,))], 1000)
        known = await slow_down(admin, [move(0, (1,), (2,))], 1000)
        settings.away = {Resource.broker(5)}
        assert (await take_off(admin, known)).brokers == (5,)
        assert settings.values[TOPIC] == {SOURCES: "2147483647:5"}
        settings.away = set()
        await take_off(admin)
        assert settings.values == {}

    asyncio.run(test())
