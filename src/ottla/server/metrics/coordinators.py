"""Groups and transactions that this node coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.observe.metrics.catalogue import coordinators as told
from ottla.observe.metrics.exposition import Exposition
from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
from ottla.server.loop.slices import Steps, Tally

if TYPE_CHECKING:
    from ottla.machine.keyed import Entry
    from ottla.machine.kit import Command
    from ottla.server.coordination.host import ViewT
    from ottla.server.coordination.hosts import Coordinators

T = TypeVar("T")

# Kafka's metrics have the states of classic groups; those of other kinds count as what is most like them.
_STATES = {
    "stable": told.STABLE_GROUPS,
    "empty": told.EMPTY_GROUPS,
    "preparingrebalance": told.PREPARING_GROUPS,
    "notready": told.PREPARING_GROUPS,
    "assigning": told.PREPARING_GROUPS,
    "completingrebalance": told.COMPLETING_GROUPS,
    "reconciling": told.COMPLETING_GROUPS,
    "dead": told.DEAD_GROUPS,
}


class CoordinatorsCollector:
    def __init__(self, coordinators: CoordinatorsOnDemand, now_ms: Callable[[], int]) -> None:
        self._coordinators = coordinators
        self._now_ms = now_ms

    def collect(self, exposition: Exposition) -> Steps:
        composed = self._coordinators.composed
        if composed is None:  # it coordinates nothing yet
            exposition.add(told.ALL_GROUPS, 0)
            _tell_states({}, exposition)
            exposition.add(told.REBALANCES, 0)
            exposition.add(told.OLDEST_TRANSACTION, 0)
            return
        from ottla.groups.listing import AllGroups
        from ottla.txns.commands.describe import ListAll

        tally = Tally(limits.METRICS_PER_SLICE)
        groups: Counter[tuple[str, str]] = Counter()
        members: Counter[str] = Counter()
        for group in _all_of(composed.groups.coordinators, AllGroups()):
            groups[group.kind.value, group.state_name] += 1
            members[group.kind.value] += len(group.members)
            if tally.is_full():
                yield
        exposition.add(told.ALL_GROUPS, groups.total())
        _tell_states(groups, exposition)
        exposition.add(told.REBALANCES, composed.groups.events.rebalances)
        for (kind, state), count in sorted(groups.items()):
            exposition.add(told.GROUPS, count, kind, state)
        for kind, count in sorted(members.items()):
            exposition.add(told.GROUP_MEMBERS, count, kind)
        states: Counter[str] = Counter()
        now_ms = self._now_ms()
        oldest_ms = now_ms
        for transaction in _all_of(composed.transactions.coordinators, ListAll()):
            states[transaction.state.text] += 1
            if transaction.partitions and transaction.started_ms >= 0:
                oldest_ms = min(oldest_ms, transaction.started_ms)
            if tally.is_full():
                yield
        for state, count in sorted(states.items()):
            exposition.add(told.TRANSACTIONS, count, state)
        exposition.add(told.OLDEST_TRANSACTION, (now_ms - oldest_ms) / 1000)


def _tell_states(groups: Mapping[tuple[str, str], int], exposition: Exposition) -> None:
    counts = dict.fromkeys(_STATES.values(), 0)
    for (_, state), count in groups.items():
        metric = _STATES.get(state.lower())
        if metric is not None:
            counts[metric] += count
    for metric, count in counts.items():
        exposition.add(metric, count)


def _all_of(coordinators: Coordinators[ViewT], listing: Command[ViewT, Entry, list[T]]) -> Iterator[T]:
    """Yield what the loaded machines list. One that is being loaded is left out of this scrape."""
    for host in tuple(coordinators.hosts()):
        if host.active:
            reply = host.ask(listing)
            if reply.done:
                found = reply.taken()
                if not isinstance(found, ApiError):
                    yield from found
