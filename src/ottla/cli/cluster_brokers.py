"""Brokers that come and go: a definition for one more; the end of one, drained, stopped and forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.cluster_plan import plan_for
from ottla.cli.cluster_view import ClusterView
from ottla.cli.local_cluster import define_broker, found_nodes, retire
from ottla.cli.output import done, err, note
from ottla.cli.terminal import CommandError
from ottla.client.options import parse_address
from ottla.cluster.balance.loads import Plan

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.voters import QuorumReplica

_LOOK_S = 0.25
_STATIC_QUORUM = 0  # the kraft.version whose voters are in the property files


def drain_plan(view: ClusterView, node_id: int, *, leaders_only: bool) -> Plan:
    if view.broker(node_id) is None:
        raise CommandError(f"there is no broker {node_id}", "`ottla cluster status` shows them")
    return plan_for(view, draining=[node_id], copies=not leaders_only, evens=False)


def add_local(directory: Path, node_id: int | None, rack: str | None) -> None:
    """One more broker of a local cluster."""
    node = define_broker(directory, rack, node_id)
    done(f"defined broker {node.node_id} at {node.address} in {node.path}")
    note(f"A running `ottla up` starts it by itself; without one, `ottla start {node.path}` does.")
    note(f"Then `ottla cluster balance -b {node.address}` shows what it could take over.")


async def property_file(admin: Admin, listen: str, node_id: int | None, rack: str | None) -> str:
    """The server.properties of a broker on another machine."""
    try:
        address = parse_address(listen)
    except ValueError as error:
        raise CommandError(str(error)) from None
    described = await admin.nodes.describe(fenced=True)
    quorum = await admin.voters.quorum()
    taken = {each.node_id for each in described.brokers} | {each.node_id for each in quorum.voters}
    if node_id is None:
        node_id = max(each.node_id for each in described.brokers) + 1
        while node_id in taken:
            node_id += 1
    if node_id in taken:
        raise CommandError(f"there is a node {node_id} already")
    controllers = {each: at[0] for each, at in sorted(quorum.endpoints.items()) if at}
    if not controllers:
        raise CommandError("the quorum does not tell where its voters listen", "an older broker answered")
    levels = {each.name: each.finalized or 0 for each in await admin.nodes.features()}
    name = next(iter(controllers.values())).listener
    values = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{address}",
        "advertised.listeners": f"PLAINTEXT://{address}",
        "controller.listener.names": name,
        "listener.security.protocol.map": f"{name}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    if levels.get("kraft.version", _STATIC_QUORUM) == _STATIC_QUORUM:
        voters = [f"{each}@{at.host}:{at.port}" for each, at in controllers.items()]
        values["controller.quorum.voters"] = ",".join(voters)
    else:
        values["controller.quorum.bootstrap.servers"] = ",".join(f"{at.host}:{at.port}" for at in controllers.values())
    if rack is not None:
        values["broker.rack"] = rack
    values["log.dirs"] = f"ottla-data-{node_id}"
    return "".join(f"{name}={value}\n" for name, value in values.items())


async def check_may_go(admin: Admin, node_id: int) -> QuorumReplica | None:
    """The voter that the broker is, too, if it is one. A voter by its property files cannot be removed."""
    quorum = await admin.voters.quorum()
    voter = next((each for each in quorum.voters if each.node_id == node_id), None)
    levels = {each.name: each.finalized or 0 for each in await admin.nodes.features()}
    if voter is not None and levels.get("kraft.version", _STATIC_QUORUM) == _STATIC_QUORUM:
        raise CommandError(
            f"node {node_id} is a controller, too, named in controller.quorum.voters: it cannot be removed",
            "`ottla cluster drain` takes the partitions off it; a dynamic quorum lets controllers go (docs/cluster.md)",
        )
    return voter


async def remove(admin: Admin, node_id: int, directory: Path) -> None:
    """Stop a broker that holds nothing any more (or wait until somebody has), and forget it."""
    voter = await check_may_go(admin, node_id)
    if voter is not None:
        await admin.voters.remove(node_id, voter.directory_id)
        done(f"node {node_id} no longer votes")
    local = next((each for each in found_nodes(directory) if each.node_id == node_id), None)
    if local is not None and await _is_in(admin, node_id, local.address):
        note(f"its property file is now {retire(local)}: `ottla up` stops it")
    elif not await _is_away(admin, node_id):
        note(f"Stop node {node_id} now (SIGTERM); waiting until it is away. Ctrl-C leaves it drained but known.")
    with err().status(f"waiting for node {node_id} to stop"):
        while True:
            if await _is_away(admin, node_id):
                break
            await asyncio.sleep(_LOOK_S)
    await admin.nodes.unregister(node_id)
    done(f"broker {node_id} is forgotten")


async def _is_in(admin: Admin, node_id: int, address: str) -> bool:
    """Whether the node of the directory is the one of this cluster."""
    brokers = (await admin.nodes.describe(fenced=True)).brokers
    return any(each.node_id == node_id and str(each.address) == address for each in brokers)


async def _is_away(admin: Admin, node_id: int) -> bool:
    brokers = (await admin.nodes.describe(fenced=True)).brokers
    return all(each.is_fenced for each in brokers if each.node_id == node_id)
