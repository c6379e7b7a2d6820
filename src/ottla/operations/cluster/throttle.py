"""The throttle of moves: Kafka's own settings, set by `--throttle`, marked as ours, and removed again.

Brokers have a rate (`…throttled.rate`), topics a list of the replicas to which the rate applies
(`…throttled.replicas`). Both stay if the command that set them is killed, so they are marked:

- A list that this command set has an entry `2147483647:BROKER` for every broker whose rate it set. No topic has that
  partition, so the entry throttles nothing, also with Kafka's brokers.
- The entries are written before the rates and removed after them: so the rates of a killed command can always be found.
- A marked list grows until it is removed: another command on the same topic adds to the list that a killed one left.
- A throttle of a topic or broker without such an entry was set by somebody else, and stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.admin.asking import one_by_one
from ottla.client.admin.configs import ConfigEntry
from ottla.client.errors import ClientError, RequestTimedOut
from ottla.cluster.balance.loads import ReplicaMove
from ottla.model.errors import ApiError
from ottla.model.limits import INT32_MAX
from ottla.model.resources import Resource
from ottla.model.settings.replication import FOLLOWER_REPLICATION_THROTTLED_RATE, LEADER_REPLICATION_THROTTLED_RATE
from ottla.model.topic_settings import FOLLOWER_REPLICATION_THROTTLED_REPLICAS, LEADER_REPLICATION_THROTTLED_REPLICAS
from ottla.operations.cluster.view import PATIENCE_S, TOPICS_AT_ONCE, ClusterView

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.outcomes import Outcomes

_TAKE_OFF = "`ottla cluster reassign --unthrottle` takes it off"
_RATES = (LEADER_REPLICATION_THROTTLED_RATE.name, FOLLOWER_REPLICATION_THROTTLED_RATE.name)
_LISTS = _SOURCES, _TARGETS = (LEADER_REPLICATION_THROTTLED_REPLICAS.name, FOLLOWER_REPLICATION_THROTTLED_REPLICAS.name)
_MARK = f"{INT32_MAX}:"
_SHOWN_TOPICS = 5


class Throttles(NamedTuple):
    """The throttles that exist: those set by this command, and those set by somebody else."""

    topics: dict[str, tuple[int, ...]]  # marked topics, with the brokers whose rates were set
    brokers: tuple[int, ...]  # marked brokers that still have a rate, or are away
    others: tuple[Resource, ...]

    def __str__(self) -> str:
        topics = [f"topic {each}" for each in list(self.topics)[:_SHOWN_TOPICS]]
        more = [f"{len(self.topics) - _SHOWN_TOPICS} more topics"] if len(self.topics) > _SHOWN_TOPICS else []
        return ", ".join([*topics, *more, *(f"broker {each}" for each in self.brokers)])


NOTHING = Throttles({}, (), ())


async def find(admin: Admin) -> Throttles:
    """Find the throttles of all topics and brokers of the cluster."""
    names, described = await asyncio.gather(admin.topics.names(), admin.nodes.describe(fenced=True))
    ours: dict[str, tuple[int, ...]] = {}
    others: list[Resource] = []
    for first in range(0, len(names), TOPICS_AT_ONCE):
        resources = [Resource.topic(each) for each in names[first : first + TOPICS_AT_ONCE]]
        for resource, entries in (await admin.configs.describe_each(resources, _LISTS)).answered().items():
            marked = _marked(entries)
            if marked:
                ours[resource.name] = marked
            elif _is_set(entries):
                others.append(resource)
    claimed = {broker for marked in ours.values() for broker in marked}
    rates = await _rates(admin, [each.node_id for each in described.brokers if not each.is_fenced])
    throttled = {int(resource.name) for resource, entries in rates.found.items() if _is_set(entries)}
    away = {int(resource.name) for resource in rates.failed}
    away |= {each.node_id for each in described.brokers if each.is_fenced}
    others += [Resource.broker(each) for each in sorted(throttled - claimed)]
    return Throttles(ours, tuple(sorted((throttled | away) & claimed)), tuple(others))


async def left_behind(admin: Admin, view: ClusterView) -> Throttles | None:
    """The throttles that a killed command left behind; None while replicas move. Topics are only requested if a broker
    has a rate, because without a rate no list throttles anything.
    """
    if any(each.move is not None for each in view.partitions):
        return None
    rates = await _rates(admin, [each.id for each in view.brokers if not each.broker.is_fenced])
    if not any(_is_set(entries) for entries in rates.found.values()):
        return None
    found = await find(admin)
    return found if found.topics else None


def tell_of(left: Throttles | None, tell: Callable[[str], None]) -> None:
    """Say what an interrupted command left behind, if it did."""
    if left is not None:
        tell(f"Nothing moves, but an interrupted command left its throttle on {left}: {_TAKE_OFF}.")


@asynccontextmanager
async def throttled(
    admin: Admin, moves: Iterable[ReplicaMove], rate: int | None, tell: Callable[[str], None], way_off: str = _TAKE_OFF
) -> AsyncIterator[None]:
    """A context in which moves are carried out at this rate (None: unlimited). Its throttles are removed at the end.
    `tell` is told which throttles stay, and `way_off`: how the user takes them off.
    """
    known = NOTHING
    try:
        if rate is not None:
            known = await slow_down(admin, moves, rate)
        for each in known.others:
            tell(f"{each} has a throttle that somebody else set: it stays as it is.")
        yield
    except BaseException:
        await hand_over(admin, known, tell, way_off)
        raise
    await take_off(admin, known)


async def slow_down(admin: Admin, moves: Iterable[ReplicaMove], rate: int) -> Throttles:
    """Throttle the copying of these moves, and return the throttles that were set. Throttles that somebody else set are
    not changed.
    """
    lists: dict[str, tuple[list[str], list[str]]] = {}
    concerned: set[int] = set()
    for move in sorted(moves):
        if move.adding:
            sources, targets = lists.setdefault(move.at.topic, ([], []))
            sources += [f"{move.at.partition}:{node}" for node in move.before]
            targets += [f"{move.at.partition}:{node}" for node in move.adding]
            concerned |= {*move.before, *move.after}
    if not lists:
        return NOTHING
    known = await find(admin)
    others = known.others
    free = [topic for topic in lists if Resource.topic(topic) not in others]
    brokers = concerned.intersection(admin.cluster.metadata.brokers) if free else set()
    ours = [each for each in sorted(brokers) if Resource.broker(each) not in others]
    marks = [f"{_MARK}{each}" for each in ours]
    listed = await admin.configs.describe_each([Resource.topic(each) for each in free if each in known.topics], _LISTS)
    before = listed.all()
    for topic in free:
        sources, targets = lists[topic]
        old = before.get(Resource.topic(topic), ())
        values = {
            _SOURCES: ",".join(dict.fromkeys([*_listed(old, _SOURCES), *sources, *marks])),
            _TARGETS: ",".join(dict.fromkeys([*_listed(old, _TARGETS), *targets])),
        }
        await admin.configs.set(Resource.topic(topic), values)
    for broker in ours:
        await admin.configs.set(Resource.broker(broker), dict.fromkeys(_RATES, str(rate)))
    touched = {*map(Resource.topic, lists), *map(Resource.broker, concerned)}
    marked = _joined(dict.fromkeys(free, tuple(ours)), {each: known.topics.get(each, ()) for each in free})
    return Throttles(marked, tuple(ours), tuple(each for each in others if each in touched))


async def take_off(admin: Admin, known: Throttles = NOTHING) -> Throttles:
    """Remove the marked throttles, and return them; `brokers` are then those that are away and keep their rate for now.
    `known` are throttles that were just set, which the broker that is asked may not have yet.
    """
    seen = await find(admin)
    brokers = tuple(sorted({*seen.brokers, *known.brokers}))
    found = Throttles(_joined(known.topics, seen.topics), brokers, seen.others)
    away: list[int] = []
    for broker in found.brokers:
        # Only the broker itself can change its settings. The mark of a broker that is away stays, so that it can be
        # found later.
        try:
            async with asyncio.timeout(PATIENCE_S):
                await admin.configs.set(Resource.broker(broker), dict.fromkeys(_RATES))
        except (ApiError, ClientError, TimeoutError):
            away.append(broker)
    for topic, marked in found.topics.items():
        marks = ",".join(f"{_MARK}{each}" for each in marked if each in away)
        await admin.configs.set(Resource.topic(topic), {_SOURCES: marks or None, _TARGETS: None})
    return found._replace(brokers=tuple(away))


async def hand_over(admin: Admin, known: Throttles, tell: Callable[[str], None], way_off: str = _TAKE_OFF) -> None:
    """Called if the command ends before its moves: the throttle stays while moves go on, and is removed if there are
    none.
    """
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            if not await admin.replicas.reassignments():
                await take_off(admin, known)
                return
            if not known.topics and not (await find(admin)).topics:
                return
    except (ApiError, ClientError, TimeoutError):
        tell(f"Whether the throttle is still set is not known: {way_off}.")
        return
    tell(f"The moves under way are throttled still: {way_off}, as does the next `ottla cluster` command that moves.")


async def _rates(admin: Admin, brokers: Iterable[int]) -> Outcomes[Resource, list[ConfigEntry]]:
    """The throttle rates of the brokers that answer in time."""
    resources = [Resource.broker(each) for each in sorted(set(brokers))]

    async def ask(resource: Resource) -> list[ConfigEntry]:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await admin.configs.describe(resource, _RATES)
        except TimeoutError:
            raise RequestTimedOut(f"{resource} gives no answer") from None

    return await one_by_one(resources, ask)


def _is_set(entries: Iterable[ConfigEntry]) -> bool:
    return any(each.value and not each.is_default for each in entries)


def _listed(entries: Iterable[ConfigEntry], name: str) -> list[str]:
    """The entries of a list in a topic's settings."""
    value = next((each.value for each in entries if each.name == name), None) or ""
    return [each.strip() for each in value.split(",") if each.strip()]


def _marked(entries: Iterable[ConfigEntry]) -> tuple[int, ...]:
    """The brokers in the marks of a topic's list."""
    marks = [each.removeprefix(_MARK) for each in _listed(entries, _SOURCES) if each.startswith(_MARK)]
    return tuple(sorted({int(each) for each in marks if each.isdecimal()}))


def _joined(one: Mapping[str, tuple[int, ...]], other: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The brokers of both, by topic."""
    return {topic: tuple(sorted({*one.get(topic, ()), *other.get(topic, ())})) for topic in {**one, **other}}
