"""A cluster on this machine, as files: one directory with a property file and a data directory per node.

Rules:
- The files define the cluster: `ottla up` on the directory starts all nodes, `ottla start DIR/node-2.properties` one of
  them. The files are written once, and edits by the user stay. Only the addresses of controllers are kept up to date.
- Every node is broker and controller in one, unless dedicated controllers are asked for, whose ids begin at 101. The
  first controllers are voters (three, or the only one); the others observe the quorum and may become voters.
- Voters are in the metadata log (kraft.version 1), so that any node can be removed. For that the data directories are
  formatted when the cluster is defined, because the first voters have to know each other. A cluster of an older release
  has its voters in every file (`controller.quorum.voters`), and keeps them there.
- With three brokers or more, the replication factor is three, and min.insync.replicas is two.
- A secure cluster has no plaintext port; its certificates and passwords are in the folder `secure` (`secure_files`).
- Nodes that listen on all interfaces advertise the name of this machine. Their controllers listen on loopback, because
  all nodes are on this machine.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.nodes.secure_files import FOLDER, SecureFiles
from ottla.cli.terminal.safe_files import make_directory, write_secret
from ottla.model.settings.controller import (
    CONTROLLER_LISTENER_NAMES,
    CONTROLLER_QUORUM_BOOTSTRAP_SERVERS,
    CONTROLLER_QUORUM_VOTERS,
)
from ottla.model.settings.groups import GROUP_INITIAL_REBALANCE_DELAY_MS, OFFSETS_TOPIC_REPLICATION_FACTOR
from ottla.model.settings.log import LOG_DIRS
from ottla.model.settings.network import ADVERTISED_LISTENERS, LISTENER_SECURITY_PROTOCOL_MAP, LISTENERS
from ottla.model.settings.node import BROKER_RACK, DEFAULT_REPLICATION_FACTOR, NODE_ID, PROCESS_ROLES
from ottla.model.settings.own import OTTLA_METRICS_LISTENER
from ottla.model.settings.replication import MIN_INSYNC_REPLICAS
from ottla.model.settings.security import SSL_KEYSTORE_LOCATION
from ottla.model.settings.share import (
    SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR,
    SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR,
)
from ottla.model.settings.transactions import TRANSACTION_STATE_LOG_MIN_ISR, TRANSACTION_STATE_LOG_REPLICATION_FACTOR
from ottla.operations.addresses import DEFAULT_HOST, PORT_MAX
from ottla.operations.errors import CommandError
from ottla.operations.settings_file import read_settings
from ottla.security.development import CLIENT_LISTENER

if TYPE_CHECKING:
    from ottla.security.sasl.scram.arguments import ScramUser

FIRST_CONTROLLER_ID = 101
_CONTROLLER_PORT_OFFSET = 1_000
_METRICS_PORT_OFFSET = 2_000
_VOTERS = 3
CONTROLLER_LISTENER = "CONTROLLER"
_VOTERS_FIXED = CONTROLLER_QUORUM_VOTERS.name
_CONTROLLERS_AT = CONTROLLER_QUORUM_BOOTSTRAP_SERVERS.name
_NAME = re.compile(r"node-(\d+)\.properties")
_OURS = re.compile(rf"\.?node-\d+(\.properties|\.removed)?|lost\+found|{FOLDER}")
_EVERYWHERE = ("0.0.0.0", "::")
_LISTEN = "--listen HOST:PORT takes an address of this machine; port 0 takes ports that are free"
_ELSEWHERE = "choose an empty directory with --data DIR, or move away what lies there"
# Defaults of `ottla up`: a new group on a laptop does not wait three seconds for more members.
LAPTOP_SETTINGS = {GROUP_INITIAL_REBALANCE_DELAY_MS.name: "0"}
_REPLICATED = {
    DEFAULT_REPLICATION_FACTOR.name: "3",
    MIN_INSYNC_REPLICAS.name: "2",
    OFFSETS_TOPIC_REPLICATION_FACTOR.name: "3",
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR.name: "3",
    TRANSACTION_STATE_LOG_MIN_ISR.name: "2",
    SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR.name: "3",
    SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR.name: "2",
}


class LocalNode(NamedTuple):
    """One node of a local cluster."""

    node_id: int
    path: Path
    values: dict[str, str]

    @property
    def name(self) -> str:
        return f"node-{self.node_id}"

    @property
    def is_broker(self) -> bool:
        return "broker" in self.values.get(PROCESS_ROLES.name, "")

    @property
    def is_controller(self) -> bool:
        return "controller" in self.values.get(PROCESS_ROLES.name, "")

    @property
    def address(self) -> str:
        """The address for clients; empty for a controller."""
        return next((at for name, at in self._listeners() if name != CONTROLLER_LISTENER), "")

    @property
    def told_address(self) -> str:
        """The address for clients as the node tells it; empty for a controller."""
        return self.values.get(ADVERTISED_LISTENERS.name, "").rpartition("://")[2] or self.address

    @property
    def is_secure(self) -> bool:
        """Whether clients need TLS and SASL."""
        return any(name == CLIENT_LISTENER for name, _ in self._listeners())

    @property
    def controller_address(self) -> str:
        """The address for other controllers; empty for a broker."""
        return next((at for name, at in self._listeners() if name == CONTROLLER_LISTENER), "")

    def _listeners(self) -> list[tuple[str, str]]:
        pairs = (each.strip().partition("://") for each in self.values.get(LISTENERS.name, "").split(","))
        return [(name, at) for name, _, at in pairs]


def found_nodes(directory: Path) -> list[LocalNode]:
    """The nodes whose files are in the directory, by id."""
    nodes = []
    for path in directory.glob("node-*.properties") if directory.is_dir() else ():
        match = _NAME.fullmatch(path.name)
        if match is not None:
            nodes.append(LocalNode(int(match[1]), path, read_settings(path)))
    return sorted(nodes)


def define(
    directory: Path,
    brokers: int,
    controllers: int | None,
    listen: tuple[str, int],
    settings: Sequence[str] = (),
    *,
    secure: bool = False,
) -> list[LocalNode]:
    """Write the files of a new cluster."""
    host, port = listen
    broker_ids = list(range(1, brokers + 1))
    controller_ids = broker_ids
    if controllers is not None:
        controller_ids = list(range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + controllers))
    node_ids = sorted({*broker_ids, *controller_ids})
    for node_id in node_ids:
        _check_unused(directory, node_id)
    _check_vacant(directory, node_ids)
    ports = free_ports(host, port, brokers)
    inside = _inside(host)
    other_ports = free_ports(inside, port + _CONTROLLER_PORT_OFFSET if port else 0, len(controller_ids), taken=ports)
    at = {node_id: f"{_url_host(host)}:{found}" for node_id, found in zip(broker_ids, ports, strict=True)}
    controllers_at = dict(zip(controller_ids, other_ports, strict=True))
    metrics_ports = free_ports(
        DEFAULT_HOST, port + _METRICS_PORT_OFFSET if port else 0, len(node_ids), taken=[*ports, *other_ports]
    )
    voters = controller_ids if controllers is not None else controller_ids[: _VOTERS if brokers >= _VOTERS else 1]
    shared_settings = dict(_pair(each) for each in settings)
    files = SecureFiles(directory) if secure else None
    make_directory(directory)
    _close_data(directory, node_ids)
    users = files.users() if files else []
    _format(directory, node_ids, {node_id: (inside, controllers_at[node_id]) for node_id in voters}, users)
    found = {node_id: f"{_url_host(inside)}:{each}" for node_id, each in controllers_at.items()}
    shared = _shared(brokers, found.values()) | (files.settings(CONTROLLER_LISTENER) if files else {}) | shared_settings
    for node_id, metrics_port in zip(node_ids, metrics_ports, strict=True):
        own = _metrics_at(metrics_port, secure=secure) | shared
        _write(directory, node_id, at.get(node_id), found.get(node_id), own, files)
    return found_nodes(directory)


def _format(
    directory: Path, node_ids: Iterable[int], voters: Mapping[int, tuple[str, int]], users: Sequence[ScramUser]
) -> None:
    """Format the directories of the nodes as one cluster with these first voters and users."""
    import random
    import time

    from ottla.model.ids import random_uuid, uuid_text
    from ottla.raft.voters import QuorumEndpoint, Voter, VoterSet
    from ottla.server.ports.os_disk import OsDisk
    from ottla.server.storage.formatting import format_directories
    from ottla.server.storage.identity import IdentityError

    rng = random.SystemRandom()
    cluster_id = uuid_text(random_uuid(rng))
    first = VoterSet(
        Voter(node_id, random_uuid(rng), (QuorumEndpoint(CONTROLLER_LISTENER, *place),))
        for node_id, place in voters.items()
    )
    for node_id in node_ids:
        path = str(_data_of(directory, node_id))
        try:
            format_directories(
                [(path, OsDisk(path))],
                path,
                node_id=node_id,
                cluster_id=cluster_id,
                voters=first,
                now_ms=time.time_ns() // 1_000_000,
                rng=rng,
                users=users,
            )
        except IdentityError as error:
            raise CommandError(str(error), error.hint) from None


def define_broker(
    directory: Path, rack: str | None = None, node_id: int | None = None, taken: Collection[int] = ()
) -> LocalNode:
    """Write the file of one more broker to the directory; `taken` are ids that the running cluster has."""
    nodes = found_nodes(directory)
    others = [each for each in nodes if each.is_broker]
    if not others:
        raise CommandError(f"{directory} holds no local cluster", "`ottla up --brokers 3` makes one")
    if node_id is None:
        node_id = max(each.node_id for each in others) + 1
        while node_id in taken or not _is_unused(directory, node_id):  # the data of a removed node is not reused
            node_id += 1
    if node_id in taken or node_id in [each.node_id for each in nodes]:
        raise CommandError(f"there is a node {node_id} already", "without --id the next free one is taken")
    _check_unused(directory, node_id)
    host, _, last = max(others).address.rpartition(":")
    (port,) = free_ports(host.strip("[]"), int(last) + 1, 1)
    controller = None
    if not is_fixed(nodes) and any(each.is_controller for each in others):
        last = max(each for each in others if each.is_controller).controller_address.rpartition(":")[2]
        inside = _inside(host.strip("[]"))
        (other_port,) = free_ports(inside, int(last) + 1, 1, taken=[port])
        controller = f"{_url_host(inside)}:{other_port}"
    own = (
        NODE_ID,
        PROCESS_ROLES,
        LISTENERS,
        ADVERTISED_LISTENERS,
        LOG_DIRS,
        BROKER_RACK,
        SSL_KEYSTORE_LOCATION,
        OTTLA_METRICS_LISTENER,
    )
    shared = {name: value for name, value in others[0].values.items() if name not in [each.name for each in own]}
    if OTTLA_METRICS_LISTENER.name in others[0].values:
        (metrics_port,) = free_ports(DEFAULT_HOST, 0, 1, taken=[port])
        shared |= _metrics_at(metrics_port, secure=others[0].is_secure)
    if rack is not None:
        shared[BROKER_RACK.name] = rack
    files = SecureFiles(directory) if others[0].is_secure else None
    if files:
        _close_data(directory, [node_id])
    _write(directory, node_id, f"{host}:{port}", controller, shared, files)
    _point_at_controllers(directory)
    return next(each for each in found_nodes(directory) if each.node_id == node_id)


def metrics_on() -> dict[str, str]:
    """The setting of a lone node that tells its metrics on a port that is free; clients read the port from it."""
    (port,) = free_ports(DEFAULT_HOST, 0, 1)
    return _metrics_at(port)


def _metrics_at(port: int, *, secure: bool = False) -> dict[str, str]:
    """The setting for the address of a node's metrics; those of a secure cluster are for its users, over TLS."""
    scheme = "HTTPS://" if secure else ""
    return {OTTLA_METRICS_LISTENER.name: scheme + host_port(DEFAULT_HOST, port)}


def is_fixed(nodes: Iterable[LocalNode]) -> bool:
    """Whether the voters are fixed in the files, as an older release wrote them."""
    return any(_VOTERS_FIXED in each.values for each in nodes)


def retire(node: LocalNode) -> Path:
    """Remove a node from the cluster by renaming its file: `ottla up` then stops the node. Its data stays."""
    path = node.path.with_suffix(".removed")
    node.path.rename(path)
    _point_at_controllers(node.path.parent)
    return path


def _point_at_controllers(directory: Path) -> None:
    """Update the addresses of controllers in each node's file; the rest of the file stays as it is."""
    nodes = found_nodes(directory)
    if is_fixed(nodes):
        return
    line = f"{_CONTROLLERS_AT}={','.join(each.controller_address for each in nodes if each.is_controller)}"
    for node in nodes:
        lines = node.path.read_text("utf-8", "surrogateescape").splitlines()
        changed = [line if each.startswith(f"{_CONTROLLERS_AT}=") else each for each in lines]
        if changed != lines:
            _replace(node.path, changed)


def _data_of(directory: Path, node_id: int) -> Path:
    return (directory / f"node-{node_id}").absolute()


def _close_data(directory: Path, node_ids: Iterable[int]) -> None:
    """Make the data directories of nodes that only their owner can enter: they hold records, and a metadata log from
    which passwords can be guessed. Those that are there stay as they are.
    """
    for node_id in node_ids:
        make_directory(_data_of(directory, node_id))


def _is_unused(directory: Path, node_id: int) -> bool:
    return not (_data_of(directory, node_id) / "meta.properties").exists()


def _check_vacant(directory: Path, node_ids: Iterable[int]) -> None:
    """Raise CommandError if the directory has other contents: a cluster needs a directory of its own."""
    from ottla.server.ports.os_disk import OsDisk
    from ottla.server.storage.identity import IdentityError
    from ottla.server.storage.vacancy import check_vacant, shown

    if not directory.exists():
        return
    if not directory.is_dir():
        raise CommandError(f"{directory} is a file and no directory", _ELSEWHERE)
    foreign = sorted(each.name for each in directory.iterdir() if not _OURS.fullmatch(each.name))
    if foreign:
        raise CommandError(f"{directory} holds no cluster, but {shown(foreign)}", _ELSEWHERE)
    try:
        check_vacant((str(_data_of(directory, node_id)) for node_id in node_ids), OsDisk)
    except IdentityError as error:
        raise CommandError(str(error), _ELSEWHERE) from None


def _check_unused(directory: Path, node_id: int) -> None:
    if not _is_unused(directory, node_id):
        raise CommandError(
            f"{_data_of(directory, node_id)} holds the data of a former node {node_id}",
            "delete it if nobody needs it",
        )


def _shared(brokers: int, controllers_at: Iterable[str]) -> dict[str, str]:
    values = {
        _CONTROLLERS_AT: ",".join(controllers_at),
        CONTROLLER_LISTENER_NAMES.name: CONTROLLER_LISTENER,
        LISTENER_SECURITY_PROTOCOL_MAP.name: f"{CONTROLLER_LISTENER}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        **LAPTOP_SETTINGS,
    }
    return values | (_REPLICATED if brokers >= int(_REPLICATED[DEFAULT_REPLICATION_FACTOR.name]) else {})


def _write(
    directory: Path,
    node_id: int,
    broker: str | None,
    controller: str | None,
    shared: dict[str, str],
    files: SecureFiles | None,
) -> None:
    roles = [role for role, address in (("broker", broker), ("controller", controller)) if address is not None]
    clients = CLIENT_LISTENER if files else "PLAINTEXT"
    listeners = [
        f"{name}://{address}" for name, address in ((clients, broker), (CONTROLLER_LISTENER, controller)) if address
    ]
    values = {PROCESS_ROLES.name: ",".join(roles), NODE_ID.name: str(node_id), LISTENERS.name: ",".join(listeners)}
    if broker is not None:
        values[ADVERTISED_LISTENERS.name] = f"{clients}://{told_address(broker)}"
    values[LOG_DIRS.name] = str(_data_of(directory, node_id))
    if files is not None:
        values |= files.node_settings(node_id, filter(None, (broker, controller)))
    lines = [f"{name}={value}" for name, value in (values | shared).items()]
    _replace(directory / f"node-{node_id}.properties", lines)


def told_address(address: str) -> str:
    """The address that a broker advertises: not all interfaces, but the name of this machine."""
    host, _, port = address.rpartition(":")
    if host.strip("[]") not in _EVERYWHERE:
        return address
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        name = "localhost"
    return f"{name}:{port}"


def _inside(host: str) -> str:
    """The host on which the controllers of brokers at this host listen."""
    return DEFAULT_HOST if host in _EVERYWHERE else host


def _replace(path: Path, lines: Sequence[str]) -> None:
    write_secret(path, "\n".join(lines) + "\n")  # it may hold passwords


def _pair(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals or not name.strip():
        raise CommandError(f"--set takes NAME=VALUE, not {setting!r}", "num.partitions=3 is one, for instance")
    return name.strip(), value


def host_port(host: str, port: int) -> str:
    """Return `HOST:PORT`, with brackets around an IPv6 address."""
    return f"{_url_host(host)}:{port}"


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def free_ports(host: str, first: int, count: int, taken: Sequence[int] = ()) -> list[int]:
    """Free ports from `first` on (0: any ports). All are bound at the same time, so that none is returned twice."""
    held: list[socket.socket] = []
    try:
        socket.getaddrinfo(host, None)  # a name that does not exist is looked up once, not with each port
    except (socket.gaierror, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "that is not the name of a host"
        raise CommandError(f"cannot listen on {host}: {why}", _LISTEN) from None
    try:
        port = first
        while len(held) < count:
            if port > PORT_MAX:
                raise CommandError(
                    f"{count} nodes need {count} free ports on {host} from {first} on, and ports end at {PORT_MAX}",
                    f"--listen {host}:9092 begins lower; port 0 takes any that are free",
                )
            try:
                held.append(socket.create_server((host, port), family=_family(host)))
                if held[-1].getsockname()[1] in taken:
                    held.pop().close()
            except OSError as error:
                if not port or port - first > count + 100:
                    raise CommandError(f"no free port on {host} from {first} on: {error.strerror}", _LISTEN) from None
            port += 1 if first else 0
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
