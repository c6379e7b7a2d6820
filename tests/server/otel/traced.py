"""Traces as trees: what a collector was sent, by trace and by parent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.support.processes.otel_collector import CollectedSpan

INTERNAL, SERVER, CLIENT = 1, 2, 3


@dataclass(eq=False)
class Work:
    """A span and its children, in the order in which they began."""

    span: CollectedSpan
    children: list[Work] = field(default_factory=list)

    def walk(self) -> Iterator[Work]:
        yield self
        for each in self.children:
            yield from each.walk()

    def find(self, name: str, kind: int, node_id: int | None = None) -> list[Work]:
        return [
            each
            for each in self.walk()
            if (each.span.name, each.span.kind) == (name, kind) and node_id in (None, each.span.node_id)
        ]

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.children))
        return f"{self.span.name}/{self.span.kind}@{self.span.node_id}" + (f"({inside})" if inside else "")


def traces(spans: Iterable[CollectedSpan]) -> list[Work]:
    """The roots of all traces; a span whose parent is not there (yet) is none."""
    works = {each.span_id: Work(each) for each in sorted(spans, key=lambda each: each.begun_ns)}
    for work in works.values():
        parent = works.get(work.span.parent_id)
        if parent is not None:
            assert parent.span.trace_id == work.span.trace_id
            parent.children.append(work)
    return [work for work in works.values() if not work.span.parent_id]
