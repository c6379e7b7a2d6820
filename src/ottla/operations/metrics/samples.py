"""The samples of a node's metrics, read from Prometheus' text format."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

Labels = Mapping[str, str]

_LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


class MetricSamples:
    """One scrape, by the names of metrics. Lines that are no samples are left out."""

    def __init__(self, text: str = "") -> None:
        self._samples: dict[str, list[tuple[Labels, float]]] = defaultdict(list)
        for line in lines_of(text):
            found = sample_in(line)
            if found is not None:
                name, labels, value = found
                self._samples[name].append((labels, value))

    def of(self, name: str) -> Iterator[tuple[Labels, float]]:
        """The samples of a metric with their labels."""
        yield from self._samples.get(name, ())

    def value(self, name: str) -> float | None:
        """The sum of a metric's samples; None if there is none."""
        samples = self._samples.get(name)
        return sum(value for _, value in samples) if samples else None

    def growth(self, before: MetricSamples, name: str) -> Iterator[tuple[Labels, float]]:
        """How much each series of a counter grew since an earlier scrape of the same node.

        A series that is new grew from 0, and one that fell began anew. One that has gone, as that of a deleted topic,
        does not count: it has no effect on the growth of the others.
        """
        earlier = {_series(labels): value for labels, value in before.of(name)}
        for labels, value in self.of(name):
            known = earlier.get(_series(labels), 0.0)
            yield labels, value - known if value >= known else value

    def by(self, name: str, label: str, **having: str) -> dict[str, float]:
        """The sums of a metric's samples that have these labels, by the value of one label."""
        found: dict[str, float] = defaultdict(float)
        for labels, value in self.of(name):
            if label in labels and all(labels.get(each) == wanted for each, wanted in having.items()):
                found[labels[label]] += value
        return dict(found)


def lines_of(text: str) -> list[str]:
    """Return the lines of a scrape that are no comments.

    Only a line feed ends a line: the format escapes no other character at which `str.splitlines` would split, so a name
    of a group or topic that has one would be read as a line of its own.
    """
    return [line for line in text.split("\n") if line and not line.startswith("#")]


def sample_in(line: str) -> tuple[str, Labels, float] | None:
    """Return the name, the labels and the value of a line; None if it is no sample."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    try:
        return found[1], _labels(found[2] or ""), float(found[3])
    except ValueError:
        return None


def _series(labels: Labels) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


def _labels(text: str) -> dict[str, str]:
    return {name: _ESCAPE.sub(_unescaped, value) for name, value in _LABEL.findall(text)}


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
