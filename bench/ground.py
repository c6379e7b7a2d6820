"""One Ottla with a schema registry beside it: the ground on which everything that is not broker against broker runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.registry import RegistryProcess

from bench import probe
from bench.subject import Ottla, Subject
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.schemas.schema import SchemaSource


@dataclass(frozen=True, slots=True)
class Ground:
    """`apart` are the processes whose CPU time is not that of the programs under test."""

    subject: Subject
    registry_url: str
    apart: tuple[int, ...]

    def register(self, topic: str, schema: str) -> int:
        """The id under which values of the topic are framed."""
        return SchemaRegistry(RegistryOptions.of(self.registry_url)).register(f"{topic}-value", SchemaSource(schema))


@contextmanager
def ground(directory: Path) -> Iterator[Ground]:
    directory.mkdir(parents=True, exist_ok=True)
    subject = Ottla(directory)
    subject.launch()
    try:
        probe.until_acknowledged(subject.bootstrap, "first")
        registry = RegistryProcess(directory, subject.bootstrap).launch()
        try:
            registry.ready()
            yield Ground(subject, registry.url, (*subject.pids, registry.pid))
        finally:
            registry.kill()  # nothing of it is needed any more, and a clean end takes its time
    finally:
        subject.stop()
