"""The registry that `ottla up` starts beside its nodes: where it listens, and what is printed about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ottla.cli.registry.registry_process import RegistryProcess


class RegistryBeside(NamedTuple):
    """The address to listen on; `is_given` means that the user has asked for it."""

    host: str
    port: int
    is_given: bool = False

    def start(self, bootstrap: str, config: Path | None = None) -> RegistryProcess:
        """Start it for these brokers; `config` is a file of its settings."""
        from ottla.cli.registry.registry_process import RegistryProcess
        from ottla.cli.terminal.output import literal, out
        from ottla.cli.terminal.plain import print_warning

        def ready(url: str) -> None:
            out().print(f"[bold green]Schema registry[/bold green] at [bold cyan]{literal(url)}[/bold cyan]")

        def failed(why: str) -> None:
            print_warning(f"no schema registry: {why} (--registry HOST:PORT takes another address, off does without)")

        return RegistryProcess(bootstrap, self.host, self.port, ready, failed, config)
