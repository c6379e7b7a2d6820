"""`ottla up --brokers 3`: a replicated cluster on this machine, in the foreground, until Ctrl-C.

Rules:
- The cluster is ready when every node is: then one line with all addresses is printed. If a node cannot start, the
  others are stopped, too; if one ends later, they go on.
- The files in the directory are watched: a node whose file appears is started, a node whose file disappears is stopped
  (`ottla cluster add-broker` and `remove-broker` use that).
"""

from __future__ import annotations

import queue
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ottla.cli.nodes.local_cluster import LocalNode, define, found_nodes
from ottla.cli.nodes.processes import Fleet, NodeEvent
from ottla.cli.terminal.plain import CommandError

if TYPE_CHECKING:
    from ottla.cli.registry.registry_process import RegistryProcess

_LOOK_S = 0.5


class UpCluster:
    """Runs a local cluster. `registry` starts a registry for these broker addresses; `listen` is the first address for
    the brokers of a new cluster, while an existing one listens where its files say.
    """

    def __init__(
        self,
        directory: Path,
        brokers: int | None,
        controllers: int | None,
        listen: tuple[str, int],
        settings: Sequence[str],
        where: str,
        registry: Callable[[str], RegistryProcess] | None,
    ) -> None:
        self._directory = directory
        self._where = where
        self._registry = registry
        self._sibling: RegistryProcess | None = None
        self._stopping = False
        nodes = found_nodes(directory)
        if nodes:
            _check_same(nodes, brokers, controllers, directory)
        else:
            nodes = define(directory, 1 if brokers is None else brokers, controllers, listen, settings)
        self._nodes = nodes
        self._fleet = Fleet([word for each in settings for word in ("--set", each)])
        self._is_up = False

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
            if self._sibling is not None:
                self._sibling.ask_to_stop()
            clean = self._fleet.stop()
            self._pass_on()
            if self._sibling is not None:
                self._sibling.stop()
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
                continue
            code = self._take(event)
            if code is not None:
                return code
        return 0

    def _take(self, event: NodeEvent) -> int | None:
        """Report an event; an exit code if that ends the command."""
        from ottla.cli.terminal.plain import print_error, print_warning

        if event.what == "says":
            _say(event)
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
            if not self._fleet.processes:
                print_error("no node is left")
                return 1
        elif event.what == "ready" and process is not None:
            if self._is_up:
                _say(NodeEvent(event.name, "says", f"ready {event.text}"))
            elif all(each.is_ready for each in self._fleet.processes.values()):
                self._ready()
        return None

    def _ready(self) -> None:
        from ottla.cli.terminal.output import out

        self._is_up = True
        addresses = ",".join(each.address for each in self._nodes if each.is_broker)
        console = out()
        console.print(f"[bold green]Ottla is up[/bold green] at [bold cyan]{addresses}[/bold cyan]")
        controllers = [each for each in self._nodes if not each.is_broker]
        brokers = len(self._nodes) - len(controllers)
        apart = f" and {len(controllers)} controllers" if controllers else ""
        console.print(f"[dim]{brokers} brokers{apart}, data and property files in {self._where}[/dim]")
        first = addresses.partition(",")[0]
        for command in ("topic create hello --partitions 3", "cluster status"):
            console.print(f"  [dim]try[/dim] ottla {command} -b {first}")
        console.print("[dim]Ctrl-C stops it[/dim]")
        if self._registry is not None:
            self._sibling = self._registry(addresses)

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
                _say(NodeEvent(name, "says", f"starting {node.path.name}"))
                self._fleet.start(node)
        for name in sorted(known - set(nodes)):
            if name in self._fleet.processes:
                _say(NodeEvent(name, "says", "stopping: its file is gone"))
                self._fleet.stop([name])
        self._nodes = list(nodes.values())

    def _pass_on(self) -> None:
        """Print the lines of nodes that are still in the queue."""
        while not self._fleet.events.empty():
            event = self._fleet.events.get()
            if event.what == "says":
                _say(event)


def _say(event: NodeEvent) -> None:
    from rich.text import Text

    from ottla.cli.terminal.output import err

    err().print(Text.assemble((f"{event.name} │ ", "cyan"), event.text))


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
