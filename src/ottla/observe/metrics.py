"""Counters, gauges and histograms, and their Prometheus text.

Rules:
- A metric is declared once, in a `Registry`, with its name, help and labels; a node has one registry (a simulator has
  many nodes, so there is no global one).
- The hot path holds on to a series (`family.labels("Produce")`) and does `series.value += 1` or `series.observe(x)`:
  no lookup, no lock, no allocation.
- Label values come from clients, so the series of a family are bounded: those beyond the limit share one, `_other`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite, isnan
from typing import Generic, Protocol, TypeVar

from ottla.model.limits import SERIES_PER_METRIC_MAX

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

OVERFLOW_LABEL = "_other"


def powers(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return `count` bucket bounds, each `factor` times the one before."""
    return tuple(first * factor**step for step in range(count))


# 10 µs to 84 s, twice as wide each time: a latency is known to within a factor of two, which is what decisions need.
SECONDS = powers(1e-5, 2, 24)
# 64 bytes to 1 GiB, four times as wide each time.
BYTES = powers(64, 4, 13)


class Counter:
    """A number that only grows. Add to `value` directly."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def samples(self) -> Iterator[tuple[str, str, float]]:
        yield "", "", self.value


class Gauge:
    """A number that goes up and down: set `value`, or give `read` to have it computed when somebody looks."""

    __slots__ = ("read", "value")

    def __init__(self) -> None:
        self.value: float = 0
        self.read: Callable[[], float] | None = None

    def samples(self) -> Iterator[tuple[str, str, float]]:
        yield "", "", self.value if self.read is None else self.read()


class Histogram:
    """How often values fell into fixed buckets; bucket i counts values up to bounds[i], the last one all above."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum: float = 0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """Return the upper bound of the bucket that holds this share of the values (0 when there are none)."""
        wanted = share * self.count
        seen = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            if seen and seen >= wanted:
                return bound
        return 0

    def samples(self) -> Iterator[tuple[str, str, float]]:
        seen = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            yield "_bucket", f'le="{_number(bound)}"', seen
        yield "_sum", "", self.sum
        yield "_count", "", seen


class Series(Protocol):
    """One line of numbers (or, for a histogram, one block)."""

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Yield (suffix of the name, extra label, value)."""


S = TypeVar("S", bound=Series)


class Family(Generic[S]):
    """All series of one metric, told apart by their label values."""

    __slots__ = ("_make", "_series", "help", "kind", "label_names", "name")

    def __init__(self, name: str, help: str, kind: str, label_names: tuple[str, ...], make: Callable[[], S]) -> None:
        self.name = name
        self.help = help
        self.kind = kind
        self.label_names = label_names
        self._make = make
        self._series: dict[tuple[str, ...], S] = {}

    def labels(self, *values: str) -> S:
        """Return the series of these label values, making it on first use."""
        found = self._series.get(values)
        if found is not None:
            return found
        assert len(values) == len(self.label_names), (self.name, values)
        if len(self._series) >= SERIES_PER_METRIC_MAX:
            values = (OVERFLOW_LABEL,) * len(values)
        return self._series.setdefault(values, self._make())

    def forget(self, *values: str) -> None:
        """Drop a series, because what it counted is gone (a deleted topic)."""
        self._series.pop(values, None)

    def series(self) -> list[tuple[tuple[str, ...], S]]:
        """Return all series with their label values, in order of the labels."""
        return sorted(self._series.items(), key=lambda item: item[0])


class Registry:
    """The metrics of one node."""

    __slots__ = ("_families",)

    def __init__(self) -> None:
        self._families: dict[str, Family[Counter] | Family[Gauge] | Family[Histogram]] = {}

    def counter(self, name: str, help: str, labels: tuple[str, ...] = ()) -> Family[Counter]:
        assert name.endswith("_total"), name
        return self._declare(Family(name, help, "counter", labels, Counter))

    def gauge(self, name: str, help: str, labels: tuple[str, ...] = ()) -> Family[Gauge]:
        return self._declare(Family(name, help, "gauge", labels, Gauge))

    def histogram(
        self, name: str, help: str, labels: tuple[str, ...] = (), bounds: Sequence[float] = SECONDS
    ) -> Family[Histogram]:
        assert list(bounds) == sorted(bounds), name
        return self._declare(Family(name, help, "histogram", labels, lambda: Histogram(bounds)))

    def families(self) -> Iterable[Family[Counter] | Family[Gauge] | Family[Histogram]]:
        """All metrics in the order they were declared."""
        return self._families.values()

    def render(self) -> str:
        """Write everything in Prometheus's text format."""
        lines: list[str] = []
        for family in self._families.values():
            lines.append(f"# HELP {family.name} {_escape(family.help)}")
            lines.append(f"# TYPE {family.name} {family.kind}")
            for values, series in family.series():
                pairs = [
                    f'{name}="{_escape(value, quotes=True)}"'
                    for name, value in zip(family.label_names, values, strict=True)
                ]
                for suffix, extra, value in series.samples():
                    inside = ",".join([*pairs, extra] if extra else pairs)
                    lines.append(f"{family.name}{suffix}{'{' + inside + '}' if inside else ''} {_number(value)}")
        return "".join(f"{line}\n" for line in lines)

    def _declare(self, family: Family[S]) -> Family[S]:
        assert family.name not in self._families, family.name
        self._families[family.name] = family  # type: ignore[assignment]  # S is one of the three
        return family


def _escape(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if quotes else text


def _number(value: float) -> str:
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
