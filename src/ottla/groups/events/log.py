"""GroupEvents: the events of the groups of one machine, within an EventBudget that all machines of a node share.

Events are soft state: they are lost when the coordinator moves or its node ends. The oldest are forgotten when a group,
or the node, has too many of them, and when they get too old. Groups with very long ids have none, because ids are kept
as long as their events, also of groups that were deleted.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence

from ottla.groups.events.event import GroupEvent, Happening
from ottla.model import limits


class _Ring:
    """The events of one group, with their numbers in the budget, the oldest first."""

    __slots__ = ("events", "group_id", "owner")

    def __init__(self, owner: dict[str, _Ring], group_id: str) -> None:
        self.owner = owner
        self.group_id = group_id
        self.events: deque[tuple[int, GroupEvent]] = deque()

    def forget_first(self) -> int:
        """Forget the oldest event and return its number; a ring without events is forgotten, too."""
        number, _ = self.events.popleft()
        if not self.events and self.owner.get(self.group_id) is self:
            del self.owner[self.group_id]
        return number


class EventBudget:
    """All events of a node, the oldest first, so that the oldest can be forgotten whichever group it is of."""

    def __init__(self) -> None:
        self.rebalances = 0  # of all groups, that have begun
        self._rings: OrderedDict[int, _Ring] = OrderedDict()
        self._next = 0

    def __len__(self) -> int:
        return len(self._rings)

    def add(self, ring: _Ring, event: GroupEvent) -> None:
        ring.events.append((self._next, event))
        self._rings[self._next] = ring
        self._next += 1
        if len(ring.events) > limits.GROUP_EVENTS_PER_GROUP_MAX:
            del self._rings[ring.forget_first()]
        while len(self._rings) > limits.GROUP_EVENTS_PER_NODE_MAX:
            self._forget_first()
        self.forget_before(event.at_ms - limits.GROUP_EVENTS_KEPT_MS)

    def repeat(self, ring: _Ring, event: GroupEvent) -> None:
        """Put `event` in place of the ring's last one, as the youngest of the node: the order is that of the times."""
        number, _ = ring.events.pop()
        del self._rings[number]
        self.add(ring, event)

    def forget_before(self, at_ms: int) -> None:
        while self._rings:
            ring = next(iter(self._rings.values()))
            if ring.events[0][1].at_ms >= at_ms:
                return
            self._forget_first()

    def _forget_first(self) -> None:
        number, ring = self._rings.popitem(last=False)
        forgotten = ring.forget_first()
        assert forgotten == number, "events are forgotten in the order in which they came"


class _Rebalance:
    """A rebalance that has begun. `missing` are the members that have not reached the present targets; None before
    there are any.
    """

    __slots__ = ("missing", "since_ms")

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.missing: set[str] | None = None


class GroupEvents:
    """`loaded_ms` is the time when the coordinator took over the groups; it knows nothing from before."""

    def __init__(self, budget: EventBudget | None = None) -> None:
        self._budget = EventBudget() if budget is None else budget
        self._rings: dict[str, _Ring] = {}
        self._rebalances: dict[str, _Rebalance] = {}
        self.loaded_ms: int | None = None

    def of(self, group_id: str, now_ms: int) -> Sequence[GroupEvent]:
        """Return the events of a group, the oldest first."""
        self._budget.forget_before(now_ms - limits.GROUP_EVENTS_KEPT_MS)
        ring = self._rings.get(group_id)
        return [] if ring is None else [event for _, event in ring.events]

    def add(self, group_id: str, event: GroupEvent) -> None:
        """Remember an event; an end of a rebalance is told only if its beginning was."""
        if event.kind is Happening.REBALANCE_BEGAN:
            self._budget.rebalances += group_id not in self._rebalances
            self._rebalances.setdefault(group_id, _Rebalance(event.at_ms)).missing = None
        elif event.kind is Happening.REBALANCE_ENDED:
            rebalance = self._rebalances.pop(group_id, None)
            if rebalance is None:
                return
            event = event._replace(duration_ms=max(event.at_ms - rebalance.since_ms, 0))
        elif event.kind is Happening.EMPTY:
            self._rebalances.pop(group_id, None)
        self._remember(group_id, event)

    def expect(self, group_id: str, member_ids: Iterable[str]) -> None:
        """The members have new targets: the rebalance ends when all have reached theirs."""
        rebalance = self._rebalances.get(group_id)
        if rebalance is not None:
            rebalance.missing = set(member_ids)

    def reached(self, group_id: str, member_id: str, event: GroupEvent) -> None:
        """The member has reached its target; `event` is the end of the rebalance, if it was the last one."""
        rebalance = self._rebalances.get(group_id)
        if rebalance is None or rebalance.missing is None:
            return
        rebalance.missing.discard(member_id)
        if not rebalance.missing:
            self.add(group_id, event)

    def _remember(self, group_id: str, event: GroupEvent) -> None:
        if len(group_id) > limits.GROUP_EVENTS_ID_CHARS_MAX:
            return
        ring = self._rings.get(group_id)
        if ring is None:
            ring = self._rings[group_id] = _Ring(self._rings, group_id)
        if ring.events:
            _, last = ring.events[-1]
            if event.repeats(last):
                self._budget.repeat(ring, event._replace(times=last.times + 1))
                return
        self._budget.add(ring, event)
