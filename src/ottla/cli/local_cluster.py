"""A cluster on this machine, as files: one directory with a property file and a data directory per node.

Rules:
- The files are the definition: `ottla up` on the directory starts what they say, `ottla start DIR/node-2.properties`
  one of them. They are written once; what is edited there stays.
- The first nodes are broker and controller in one (three of them, or the only one), unless there are to be controllers
  of their own, whose ids begin at 101. Voters are named in every file, so the same files are always the same cluster.
- With three brokers and more, records are kept three times and a write is acknowledged when two have it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.cli.terminal import CommandError
from ottla.model.properties import PropertiesError, parse_properties

FIRST_CONTROLLER_ID = 101
_CONTROLLER_PORT_OFFSET = 1_000
_CONTROLLERS_COMBINED = 3
_NAME = re.compile(r"node-(\d+)\.properties")
_REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class LocalNode(NamedTuple):
    """One node of the directory."""

    node_id: int
    path: Path
    values: dict[str, str]

    @property
    def name(self) -> str:
        return f"node-{self.node_id}"

    @property
    def is_broker(self) -> bool:
        return "broker" in self.values.get("process.roles", "")

    @property
    def address(self) -> str:
        """Where clients find it; empty for a controller."""
        for listener in self.values.get("listeners", "").split(","):
            name, _, rest = listener.partition("://")
            if name != "CONTROLLER":
                return rest
        return ""


def found_nodes(directory: Path) -> list[LocalNode]:
    """The nodes that the directory defines, by id."""
    nodes = []
    for path in directory.glob("node-*.properties") if directory.is_dir() else ():
        match = _NAME.fullmatch(path.name)
        if match is not None:
            try:
                values = parse_properties(path.read_text("utf-8")).values
            except (PropertiesError, UnicodeDecodeError) as error:
                raise CommandError(f"{path}: {error}") from None
            nodes.append(LocalNode(int(match[1]), path, values))
    return sorted(nodes)


def define(
    directory: Path, brokers: int, controllers: int | None, listen: tuple[str, int], settings: Sequence[str] = ()
) -> list[LocalNode]:
    """Write the files of a new cluster."""
    if brokers < 1 or (controllers is not None and controllers < 1):
        raise CommandError("a cluster has one broker at least, and one controller")
    directory.mkdir(parents=True, exist_ok=True)
    host, port = listen
    ports = _ports(host, port, brokers)
    combined = 0 if controllers is not None else (_CONTROLLERS_COMBINED if brokers >= _CONTROLLERS_COMBINED else 1)
    voter_ids = (
        list(range(1, combined + 1))
        if controllers is None
        else list(range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + controllers))
    )
    voter_ports = _ports(host, port + _CONTROLLER_PORT_OFFSET if port else 0, len(voter_ids), taken=ports)
    voters = {
        node_id: f"{_url_host(host)}:{voter_port}" for node_id, voter_port in zip(voter_ids, voter_ports, strict=True)
    }
    shared = _shared(brokers, voters) | dict(_pair(each) for each in settings)
    for node_id in sorted({*range(1, brokers + 1), *voters}):
        broker = f"{_url_host(host)}:{ports[node_id - 1]}" if node_id <= brokers else None
        _write(directory, node_id, broker, voters.get(node_id), shared)
    return found_nodes(directory)


def define_broker(directory: Path, rack: str | None = None, node_id: int | None = None) -> LocalNode:
    """Write the file of one more broker, next to those that are there."""
    nodes = found_nodes(directory)
    others = [each for each in nodes if each.is_broker]
    if not others:
        raise CommandError(f"{directory} holds no local cluster", "`ottla up --brokers 3` makes one")
    ids = [each.node_id for each in others]
    node_id = max(ids) + 1 if node_id is None else node_id
    if node_id in [each.node_id for each in nodes]:
        raise CommandError(f"there is a node {node_id} already")
    host, _, last = max(others).address.rpartition(":")
    (port,) = _ports(host.strip("[]"), int(last) + 1, 1)
    own = ("node.id", "process.roles", "listeners", "advertised.listeners", "log.dirs", "broker.rack")
    shared = {name: value for name, value in others[0].values.items() if name not in own}
    if rack is not None:
        shared["broker.rack"] = rack
    _write(directory, node_id, f"{host}:{port}", None, shared)
    return next(each for each in found_nodes(directory) if each.node_id == node_id)


def retire(node: LocalNode) -> Path:
    """The node is none of the cluster any more: `ottla up` stops it and forgets it. Its data stays."""
    path = node.path.with_suffix(".removed")
    node.path.rename(path)
    return path


def _shared(brokers: int, voters: dict[int, str]) -> dict[str, str]:
    values = {
        "controller.quorum.voters": ",".join(f"{node_id}@{address}" for node_id, address in voters.items()),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    return values | (_REPLICATED if brokers >= int(_REPLICATED["default.replication.factor"]) else {})


def _write(directory: Path, node_id: int, broker: str | None, controller: str | None, shared: dict[str, str]) -> None:
    roles = [role for role, address in (("broker", broker), ("controller", controller)) if address is not None]
    listeners = [
        f"{name}://{address}" for name, address in (("PLAINTEXT", broker), ("CONTROLLER", controller)) if address
    ]
    values = {"process.roles": ",".join(roles), "node.id": str(node_id), "listeners": ",".join(listeners)}
    if broker is not None:
        values["advertised.listeners"] = f"PLAINTEXT://{broker}"
    values["log.dirs"] = str((directory / f"node-{node_id}").absolute())
    lines = [f"{name}={value}" for name, value in (values | shared).items()]
    draft = directory / f".node-{node_id}.properties"
    draft.write_text("\n".join(lines) + "\n", "utf-8")
    draft.rename(directory / f"node-{node_id}.properties")  # whoever sees it sees all of it


def _pair(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals:
        raise CommandError(f"--set takes NAME=VALUE, not {setting!r}")
    return name.strip(), value


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _ports(host: str, first: int, count: int, taken: Sequence[int] = ()) -> list[int]:
    """Ports from `first` on (0: anywhere) that nobody listens on; all held at once, so that none is found twice."""
    held: list[socket.socket] = []
    try:
        port = first
        while len(held) < count:
            try:
                held.append(socket.create_server((host, port), family=_family(host)))
                if held[-1].getsockname()[1] in taken:
                    held.pop().close()
            except OSError as error:
                if not port or port - first > count + 100:
                    raise CommandError(f"no free port on {host} from {first} on: {error}") from None
            port += 1 if first else 0
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
