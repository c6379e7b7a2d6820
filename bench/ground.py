"""One Ottla node with a schema registry: the environment of all benchmarks that do not compare brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.registry import RegistryProcess

from bench import probe
from bench.subject import Ottla, Subject
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.schemas.schema import SchemaSource


@dataclass(frozen=True, slots=True)
class Ground:
    """A node and a registry. `apart` are the processes whose CPU time does not count for the programs under test."""

    subject: Subject
    registry_url: str
    apart: tuple[int, ...]

    def register(self, topic: str, schema: str) -> int:
        """Register the schema for values of the topic; its id."""
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
            registry.kill()  # it is not needed any more, and a clean stop takes longer
    finally:
        subject.stop()
