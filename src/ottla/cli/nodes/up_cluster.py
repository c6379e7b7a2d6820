"""`ottla up --brokers 3`: a replicated cluster on this machine, in the foreground, until Ctrl-C.

Rules:
- The cluster is ready when every node is: then one line with all addresses is printed. If a node cannot start, the
  others are stopped, too; if one ends later, they go on, as long as any node of the cluster runs: also one that was
  started again by hand.
- The files in the directory are watched: a node whose file appears is started, a node whose file disappears is stopped
  (`ottla cluster add-broker` and `remove-broker` use that).
"""

from __future__ import annotations

import queue
import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ottla.cli.nodes.addresses import check_free
from ottla.cli.nodes.intact import check_data, running_nodes
from ottla.cli.nodes.local_cluster import LocalNode, define, found_nodes, free_ports, host_port, told_address
from ottla.cli.nodes.node_lines import NodeLines
from ottla.cli.nodes.processes import Fleet, NodeEvent
from ottla.cli.nodes.secure_clients import SecureClients, registry_address_in
from ottla.cli.nodes.secure_files import SecureFiles, renewal_of
from ottla.cli.nodes.start import LogFormat
from ottla.model.settings.own import OTTLA_METRICS_LISTENER
from ottla.operations.addresses import host_and_port, metrics_url
from ottla.operations.errors import CommandError
from ottla.security.development import ADMIN

if TYPE_CHECKING:
    from ottla.cli.beside.services import RunningServices, ServiceAddress, ServiceFiles, Services

_LOOK_S = 0.5


class UpCluster:
    """Runs a local cluster, with `services` beside it. `listen` is the first address for the brokers of a new
    cluster, while an existing one listens where its files say. A `secure` cluster stays secure; `profile` is the name
    of a profile to make for it.
    """

    def __init__(
        self,
        directory: Path,
        brokers: int | None,
        controllers: int | None,
        listen: tuple[str, int],
        settings: Sequence[str],
        where: str,
        services: Services,
        *,
        secure: bool = False,
        profile: str | None = None,
        log_format: LogFormat = "plain",
    ) -> None:
        self._directory = directory
        self._where = where
        self._services = services
        self._running: RunningServices | None = None
        self._stopping = False
        nodes = found_nodes(directory)
        self._existed = bool(nodes)
        if nodes:
            _check_same(nodes, brokers, controllers, directory)
            if secure and not any(each.is_secure for each in nodes):
                raise not_secure(directory, "a cluster")
            check_data(directory, nodes)
        else:
            count = 1 if brokers is None else brokers
            if count == 1 and listen[1]:  # more brokers step over ports that are taken
                check_free([listen])
            nodes = define(directory, count, controllers, listen, settings, secure=secure)
        self._nodes = nodes
        self._secured = SecureFiles(directory) if any(each.is_secure for each in nodes) else None
        self._profile = profile
        if self._secured is not None and self._secured.exist:
            self._secured.restore()
            for node in nodes:
                self._secured.renew(node.node_id, node.values)
        self._lines = NodeLines(log_format)
        words = [word for each in settings for word in ("--set", each)]
        self._fleet = Fleet([*words, "--log-format", log_format])
        self._is_up = False

    def check_listen(self, listen: str) -> None:
        """Warn if no broker of the cluster has this address: the files of an existing cluster decide."""
        from ottla.cli.terminal.plain import print_warning

        host, port = host_and_port(listen)
        addresses = [each.address for each in self._nodes if each.is_broker]
        parts = [each.rpartition(":") for each in addresses]
        is_there = any(at.strip("[]") == host and port in (0, int(number or 0)) for at, _, number in parts)
        if self._existed and not is_there:
            print_warning(
                f"--listen {listen} has no effect: the brokers in {self._directory} listen at {', '.join(addresses)}, "
                "as their property files say"
            )

    def run(self) -> int:
        """Serve until told to stop; returns the exit code."""
        from ottla.cli.terminal.output import out

        former: dict[int, Any] = {
            number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)
        }
        code = 0
        try:
            for node in self._nodes:
                self._fleet.start(node)
            code = self._serve()
        finally:
            if self._running is not None:
                self._running.ask_to_stop()
            clean = self._fleet.stop()
            self._pass_on()
            if self._running is not None:
                self._running.stop()
            for number, handler in former.items():
                signal.signal(number, handler)
        if code == 0 and clean:
            out().print("[dim]stopped cleanly[/dim]")
        return code

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _serve(self) -> int:
        while not self._stopping:
            try:
                event = self._fleet.events.get(timeout=_LOOK_S)
            except queue.Empty:
                self._look_at_files()
                if self._is_up and self._when_none_is_left() is not None:
                    return 1
                continue
            code = self._take(event)
            if code is not None:
                return code
        return 0

    def _take(self, event: NodeEvent) -> int | None:
        """Report an event; an exit code if that ends the command."""
        from ottla.cli.terminal.plain import print_error, print_warning

        if event.what == "says":
            self._lines.say(event)
            return None
        process = self._fleet.processes.get(event.name)
        if event.what == "ended" and process is not None:
            if self._stopping:
                return 0
            if not self._is_up:
                self._pass_on()
                print_error(f"{event.name} ended with {event.text}, so the others are stopped, too")
                return 1
            print_warning(f"{event.name} ended with {event.text}; `ottla start {process.node.path}` starts it again")
            self._fleet.stop([event.name])
            return self._when_none_is_left()
        elif event.what == "ready" and process is not None:
            if self._is_up:
                self._lines.say(NodeEvent(event.name, "says", f"ready {event.text}"))
            elif all(each.is_ready for each in self._fleet.processes.values()):
                self._ready()
        return None

    def _when_none_is_left(self) -> int | None:
        """An exit code if no node of the cluster runs: neither one of this command nor one that was started by hand."""
        if self._fleet.processes or running_nodes(self._nodes):
            return None
        from ottla.cli.terminal.plain import print_error

        print_error("no node is left")
        return 1

    def _ready(self) -> None:
        from ottla.cli.terminal.output import literal, out

        self._is_up = True
        if not self._logs_in():
            return
        addresses = ",".join(each.told_address for each in self._nodes if each.is_broker)
        console = out()
        console.print(f"[bold green]Ottla is up[/bold green] at [bold cyan]{literal(addresses)}[/bold cyan]")
        controllers = [each for each in self._nodes if not each.is_broker]
        brokers = len(self._nodes) - len(controllers)
        apart = f" and {len(controllers)} controllers" if controllers else ""
        noun = "broker" if brokers == 1 else "brokers"
        console.print(f"[dim]{brokers} {noun}{apart}, data and property files in {literal(self._where)}[/dim]")
        metrics = [each.values.get(OTTLA_METRICS_LISTENER.name) for each in self._nodes]
        if any(metrics):
            from ottla.server.settings.metrics_listener import metrics_place

            told = ", ".join(metrics_url(*metrics_place(each)) for each in metrics if each)
            console.print(f"[dim]metrics at {literal(told)}[/dim]", soft_wrap=True)
        services, files = self._services, None
        if self._secured is not None:
            services, files = self._tell_clients(self._secured, addresses)
        else:
            first = addresses.partition(",")[0]
            for command in ("topic create hello --partitions 3", "cluster status"):
                console.print(f"  [dim]try[/dim] ottla {command} -b {literal(first)}")
        console.print("[dim]Ctrl-C stops it[/dim]")
        self._running = services.start(addresses, files)

    def _logs_in(self) -> bool:
        """Whether the nodes of a secure cluster can log in to each other; an error is printed if not."""
        from ottla.cli.terminal.plain import print_error, print_warning

        if self._secured is None or not self._existed:
            return True
        from ottla.cli.nodes.own_login import check_own_login, is_stale_for_clients

        file = str(SecureClients(self._secured, "").client_file)
        broker = next(each for each in self._nodes if each.is_broker)
        try:
            check_own_login(broker, self._secured, file)
        except CommandError as error:
            print_error(str(error), error.hint)
            return False
        if is_stale_for_clients(broker, self._secured):
            path = self._secured.password_file(ADMIN)
            print_warning(f"user {ADMIN} has another password than {path} says: {renewal_of(self._secured.folder)}")
        return True

    def _tell_clients(self, files: SecureFiles, addresses: str) -> tuple[Services, ServiceFiles]:
        """Print how clients reach a secure cluster, and write it to files; return where the registry and the console
        listen, and the files of their settings.
        """
        from ottla.cli.beside.services import ServiceFiles
        from ottla.cli.terminal.output import literal, out

        registry, console, _ = self._services
        config, url = None, None
        if registry is not None:
            registry = _fixed(registry, registry_address_in(files))
            address = host_port(registry.host, registry.port)
            config = SecureClients(files, addresses).write_registry(address)
            url = f"https://{told_address(address)}"
        clients = SecureClients(files, addresses, url)
        clients.write()
        if self._profile is not None:
            clients.save_profile(self._profile)
        out().print(clients.text(with_password=not self._existed), markup=False)
        if not self._existed:
            out().print(f"[dim]the password is shown once; it is in {literal(files.password_file(ADMIN))}[/dim]")
        certificate = None if console is None else files.console_certificate(str(console))
        return self._services._replace(registry=registry), ServiceFiles(config, clients.client_file, certificate)

    def _look_at_files(self) -> None:
        if not self._is_up:
            return
        try:
            nodes = {each.name: each for each in found_nodes(self._directory)}
        except (CommandError, OSError):
            return  # a file may be in the middle of an edit
        known = {each.name for each in self._nodes}
        for name, node in nodes.items():
            if name not in known:
                self._lines.say(NodeEvent(name, "says", f"starting {node.path.name}"))
                self._fleet.start(node)
        for name in sorted(known - set(nodes)):
            if name in self._fleet.processes:
                self._lines.say(NodeEvent(name, "says", "stopping: its file is gone"))
                self._fleet.stop([name])
        self._nodes = list(nodes.values())

    def _pass_on(self) -> None:
        """Print the lines of nodes that are still in the queue."""
        while not self._fleet.events.empty():
            event = self._fleet.events.get()
            if event.what == "says":
                self._lines.say(event)


def not_secure(directory: Path, what: str) -> CommandError:
    """Return the refusal of `--secure` where the data of a plain node or cluster lies."""
    return CommandError(
        f"{directory} holds {what} without security, which cannot be made secure in place",
        f"--data {directory}-secure makes a secure cluster of its own; without --secure it starts as it is",
    )


def _fixed(registry: ServiceAddress, known: str | None) -> ServiceAddress:
    """The registry with the address that its file says, unless the user asks for another one. A port of 0 becomes one
    that is free now, and will be in the files of clients.
    """
    if known is not None and not registry.is_given:
        host, port = host_and_port(known)
        return registry._replace(host=host, port=port)
    (port,) = free_ports(registry.host, 0, 1) if registry.port == 0 else (registry.port,)
    return registry._replace(port=port)


def _check_same(nodes: list[LocalNode], brokers: int | None, controllers: int | None, directory: Path) -> None:
    """Raise CommandError if the command line asks for another cluster than the one in the directory."""
    found = sum(each.is_broker for each in nodes)
    apart = len(nodes) - found
    if brokers is not None and brokers != found:
        raise CommandError(
            f"{directory} holds a cluster of {found} brokers, not {brokers}",
            "`ottla cluster add-broker` and `remove-broker` change that; --data DIR makes another one",
        )
    if controllers is not None and controllers != apart:
        raise CommandError(f"{directory} holds a cluster with {apart} controllers of their own, not {controllers}")
