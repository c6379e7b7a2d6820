"""ToldNames: which topics or groups are told one by one, and the totals of these and of all others.

As many as a setting says have totals of their own, the busiest first. Once a name has them it keeps them: if no more
can be added, one without traffic since the last scrape makes room for a busier one. All others share the totals of
`(other)`. So each total only grows for as long as it is told, and those of `(other)` never go down. The sum over all
names does go down: a name that is deleted, or makes room, takes its totals along. Whoever asks how much came takes the
growth of each name by itself and adds these up, as Prometheus does in `sum(rate(...))`; a name that comes back begins
at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ottla.model import limits
from ottla.server.loop.slices import Steps, Tally

OTHER = "(other)"


class ToldNames:
    """The names that may be told one by one, by patterns."""

    def __init__(self, most: int, include: Sequence[str], exclude: Sequence[str]) -> None:
        self.most = most
        self._include = include
        self._exclude = exclude

    def include(self, name: str) -> bool:
        return (
            name != OTHER
            and any(fnmatchcase(name, each) for each in self._include)
            and not any(fnmatchcase(name, each) for each in self._exclude)
        )


class NamedTotals:
    """Totals of several counters by name; `traffic` are the indexes of the counters that say how busy a name is."""

    def __init__(self, names: ToldNames, width: int, traffic: Sequence[int]) -> None:
        self.named: dict[str, list[int]] = {}
        self.other = [0] * width
        self._names = names
        self._traffic = traffic

    def add(self, news: Mapping[str, Sequence[int]]) -> Steps:
        """Add what came since the last scrape; `news` has all names that exist."""
        self._choose(news)
        tally = Tally(limits.METRICS_PER_SLICE)
        for name, new in news.items():
            add_to(self.named.get(name, self.other), new)
            if tally.is_full():
                yield

    def _choose(self, news: Mapping[str, Sequence[int]]) -> None:
        for gone in self.named.keys() - news.keys():
            del self.named[gone]
        busy = [name for name in news if name not in self.named and self._names.include(name)]
        busy.sort(key=lambda name: (-self._traffic_of(news[name]), name))
        idle = [name for name in self.named if not self._traffic_of(news[name])]
        for name in busy:
            if len(self.named) >= self._names.most:
                if not (idle and self._traffic_of(news[name])):
                    return
                del self.named[idle.pop()]  # what it had is no news of the others: they go on without it
            self.named[name] = [0] * len(self.other)

    def _traffic_of(self, new: Sequence[int]) -> int:
        return sum(new[at] for at in self._traffic)


def add_to(totals: list[int], more: Sequence[int]) -> None:
    for at, value in enumerate(more):
        totals[at] += value
