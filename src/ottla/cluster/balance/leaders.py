"""The goals about leaders: every broker leads as many partitions and serves as many bytes as the others. No data is
copied for these goals: another of a partition's replicas becomes its preferred leader.

Counts are evened along the shortest chain of brokers from one that leads many to one that leads at least two fewer:
each broker of the chain hands one partition to the next, which has a replica of it. So the final spread of leaders is
the best that exists.
"""

from __future__ import annotations

from collections import deque

from ottla.cluster.balance.layout import Layout
from ottla.model import limits
from ottla.model.ids import TopicPartition

_TOLERANCE = 0.1


class Leaders:
    """The partitions that each broker which takes replicas is the preferred leader of."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.led: dict[int, dict[TopicPartition, None]] = {each: {} for each in layout.takers}
        for at, replicas in layout.replicas.items():
            if replicas[0] in self.led:
                self.led[replicas[0]][at] = None

    def hand_over(self, at: TopicPartition, new: int) -> None:
        old = self._layout.replicas[at][0]
        self._layout.prefer(at, new)
        if old in self.led:
            del self.led[old][at]
        self.led[new][at] = None

    def crowd(self, broker: int) -> float:
        return len(self.led[broker]) / self._layout.capacity(broker)

    def rate(self, broker: int) -> float:
        partitions = self._layout.partitions
        return sum(partitions[at].rate for at in self.led[broker]) / self._layout.capacity(broker)

    def followers(self, at: TopicPartition) -> list[int]:
        return [each for each in self._layout.replicas[at][1:] if each in self.led]

    def evens(self, old: int, new: int) -> bool:
        """Whether moving one leadership from `old` to `new` lowers the sum of squares (by capacity)."""
        capacity = self._layout.capacity
        return (2 * len(self.led[old]) - 1) / capacity(old) > (2 * len(self.led[new]) + 1) / capacity(new)


def leave_leadership(layout: Layout) -> None:
    """Brokers that drain give up every leadership that another replica may take."""
    leaders = Leaders(layout)
    for at, replicas in layout.replicas.items():
        first = layout.brokers.get(replicas[0])
        if first is not None and first.draining and (able := leaders.followers(at)):
            leaders.hand_over(at, min(able, key=lambda each: (leaders.crowd(each), each)))


def even_leaders(layout: Layout) -> None:
    """Even the number of leaderships of the brokers that take part, then the bytes that they serve as leaders."""
    leaders = Leaders(layout)
    while _hand_one_over(leaders, layout):
        pass
    _even_rates(leaders, layout)


def _hand_one_over(leaders: Leaders, layout: Layout) -> bool:
    for start in sorted(layout.takers, key=lambda each: (-leaders.crowd(each), each)):
        chain = _chain(leaders, start)
        if chain:
            for at, new in chain:
                leaders.hand_over(at, new)
            return True
    return False


def _chain(leaders: Leaders, start: int) -> list[tuple[TopicPartition, int]]:
    """Return the shortest chain of hand-overs that ends at a broker which leads enough fewer partitions than
    `start`.
    """
    # broker -> the partition it would get, and the broker it gets it from
    came: dict[int, tuple[TopicPartition, int]] = {}
    waiting = deque([start])
    while waiting:
        broker = waiting.popleft()
        if broker != start and leaders.evens(start, broker):
            steps: list[tuple[TopicPartition, int]] = []
            while broker != start:
                at, former = came[broker]
                steps.append((at, broker))
                broker = former
            return steps
        for at in leaders.led[broker]:
            for follower in leaders.followers(at):
                if follower != start and follower not in came:
                    came[follower] = (at, broker)
                    waiting.append(follower)
    return []


def _even_rates(leaders: Leaders, layout: Layout) -> None:
    """Brokers that lead busy partitions exchange leaderships with brokers that lead quiet ones."""
    takers = layout.takers
    mean = sum(leaders.rate(each) for each in takers) / (len(takers) or 1)
    for _ in range(limits.BALANCE_EXCHANGES_MAX):
        hot = max(takers, key=lambda each: (leaders.rate(each), -each), default=None)
        if hot is None or leaders.rate(hot) <= (1 + _TOLERANCE) * mean:
            return
        exchange = _cooling(leaders, layout, hot, least=_TOLERANCE * mean / 2)
        if exchange is None:
            return
        busy, quiet, other = exchange
        leaders.hand_over(busy, other)
        leaders.hand_over(quiet, hot)


def _cooling(
    leaders: Leaders, layout: Layout, hot: int, least: float
) -> tuple[TopicPartition, TopicPartition, int] | None:
    """Return a partition of the hot broker, a quieter one of another broker, and that broker; both hold replicas of
    both.
    """
    rates = {at: layout.partitions[at].rate for broker in layout.takers for at in leaders.led[broker]}
    best: tuple[float, TopicPartition, TopicPartition, int] | None = None
    for other in layout.takers:
        gap = leaders.rate(hot) - leaders.rate(other)
        if other == hot or gap <= 0:
            continue
        quiet = sorted((rates[at], at) for at in leaders.led[other] if hot in layout.replicas[at])
        for busy in sorted(at for at in leaders.led[hot] if other in layout.replicas[at]):
            for rate, at in quiet[: limits.BALANCE_CANDIDATES_MAX]:
                shift = rates[busy] - rate
                if least < shift < gap and (best is None or abs(shift - gap / 2) < best[0]):
                    best = (abs(shift - gap / 2), busy, at, other)
    return None if best is None else best[1:]
