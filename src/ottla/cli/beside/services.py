"""The registry and the console that `ottla up` starts beside its nodes: where they listen, what is printed about them.

Rules:
- The console waits for the registry's report: it is told the registry's address, and does not start at the same time.
- The console serves this machine only, unless the user says otherwise: without users, everybody who reaches it may
  change the cluster.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.operations.addresses import DEFAULT_HOST

if TYPE_CHECKING:
    from ottla.cli.beside.sibling import SiblingProcess, SiblingReports
    from ottla.cli.nodes.start import LogFormat

REGISTRY_PORT = 8081
CONSOLE_PORT = 8090
OFF = "off"
# How long the console waits for the registry's report before it starts without it.
_REGISTRY_WAIT_S = 10.0


class ServiceAddress(NamedTuple):
    """The address to listen on; `is_given` means that the user has asked for it."""

    host: str
    port: int
    is_given: bool = False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ServiceFiles(NamedTuple):
    """What a secure cluster gives to its services: the registry's settings, the settings of clients, the certificate
    and key of the console.
    """

    registry: Path | None = None
    clients: Path | None = None
    certificate: Path | None = None


class Services(NamedTuple):
    """What to start beside the nodes; None is not started."""

    registry: ServiceAddress | None
    console: ServiceAddress | None
    log_format: LogFormat = "plain"

    def start(self, bootstrap: str, files: ServiceFiles | None = None) -> RunningServices:
        """Start them for these brokers."""
        return RunningServices(self, bootstrap, files or ServiceFiles())


def services_at(
    registry: str | None,
    console: str | None,
    node: tuple[str, int],
    place: Callable[[str], tuple[str, int]],
    log_format: LogFormat = "plain",
) -> Services:
    """What the options say; `place` parses an address. By default the registry has the node's host. If the node's port
    is 0, both take free ports, too.
    """
    host, port = node

    def address(given: str | None, usual: ServiceAddress) -> ServiceAddress | None:
        if given == OFF:
            return None
        if given is not None:
            return ServiceAddress(*place(given), is_given=True)
        return usual if port else usual._replace(port=0)

    return Services(
        address(registry, ServiceAddress(host, REGISTRY_PORT)),
        address(console, ServiceAddress(DEFAULT_HOST, CONSOLE_PORT)),
        log_format,
    )


class RunningServices:
    """The processes beside the nodes."""

    def __init__(self, services: Services, bootstrap: str, files: ServiceFiles) -> None:
        from ottla.cli.beside.sibling import STOP_S, SiblingProcess
        from ottla.model import limits

        self._services = services
        self._bootstrap = bootstrap
        self._files = files
        self._registry_url: str | None = None
        self._registry_known = threading.Event()
        self._processes: list[SiblingProcess] = []
        if services.registry is None:
            self._registry_known.set()
        else:
            registry = SiblingProcess("registry", self._registry_words, self._registry_reports())
            self._processes.append(registry)
        if services.console is not None:
            # Sessions that end with the console put away what they have set, such as the throttle of a plan.
            stop_s = STOP_S + limits.CONSOLE_CLOSE_S
            console = SiblingProcess("console", self._console_words, self._console_reports(), stop_s)
            self._processes.append(console)

    def ask_to_stop(self) -> None:
        """Ask them to stop; `stop` waits for their end."""
        for process in self._processes:
            process.ask_to_stop()
        self._registry_known.set()

    def stop(self) -> None:
        self.ask_to_stop()
        for process in self._processes:
            process.stop()

    def _registry_words(self) -> list[str]:
        at = self._services.registry
        assert at is not None
        words = ["ottla.registry", "--bootstrap", self._bootstrap, "--host", at.host, "--port", str(at.port)]
        words += ["--log-format", self._services.log_format]
        return [*words, "--config", str(self._files.registry)] if self._files.registry else words

    def _console_words(self) -> list[str]:
        at, files = self._services.console, self._files
        assert at is not None
        self._registry_known.wait(_REGISTRY_WAIT_S)
        words = ["ottla", "console", "--listen", str(at), "--bootstrap", self._bootstrap, "--with-parent"]
        words += ["--log-format", self._services.log_format]
        known = OFF if self._services.registry is None else self._registry_url
        words += ["--registry", known] if known else []
        if files.clients is not None:
            words += ["--command-config", str(files.clients)]
        if files.certificate is not None:
            words += ["--certificate", str(files.certificate), "--key", str(files.certificate)]
        return words

    def _registry_reports(self) -> SiblingReports:
        from ottla.cli.beside.sibling import SiblingReports
        from ottla.cli.terminal.plain import print_warning

        def ready(url: str) -> None:
            _say("Schema registry", url)
            self._registry_url = url
            self._registry_known.set()

        def failed(why: str) -> None:
            print_warning(f"no schema registry: {why} (--registry HOST:PORT takes another address, off does without)")
            self._registry_known.set()

        return SiblingReports(ready, failed)

    def _console_reports(self) -> SiblingReports:
        from ottla.cli.beside.sibling import SiblingReports
        from ottla.cli.terminal.plain import print_warning

        def failed(why: str) -> None:
            print_warning(f"no console: {why} (--console HOST:PORT takes another address, off does without)")

        return SiblingReports(lambda url: _say("Console", url), failed)


def _say(what: str, url: str) -> None:
    from ottla.cli.terminal.output import literal, out

    out().print(f"[bold green]{what}[/bold green] at [bold cyan]{literal(url)}[/bold cyan]")
