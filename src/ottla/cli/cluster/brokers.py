"""Adding and removing brokers: write the property file of a new broker; drain, stop and unregister a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.cluster.voter_handover import add_voter, tell_handover, until_it_follows
from ottla.cli.nodes.local_cluster import CONTROLLER_LISTENER, LocalNode, define_broker, found_nodes, is_fixed, retire
from ottla.cli.options import client_options
from ottla.cli.terminal.output import done, err, note
from ottla.client.admin.voters import VoterEndpoint
from ottla.client.errors import ClientError
from ottla.client.options import parse_address
from ottla.model.errors import ApiError
from ottla.model.settings.controller import (
    CONTROLLER_LISTENER_NAMES,
    CONTROLLER_QUORUM_BOOTSTRAP_SERVERS,
    CONTROLLER_QUORUM_VOTERS,
)
from ottla.model.settings.log import LOG_DIRS
from ottla.model.settings.network import ADVERTISED_LISTENERS, LISTENER_SECURITY_PROTOCOL_MAP, LISTENERS
from ottla.model.settings.node import BROKER_RACK, NODE_ID, PROCESS_ROLES
from ottla.operations.cluster.voter_changes import KRAFT_VERSION, plan_handover
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.address import Address
    from ottla.client.admin import Admin

_LOOK_S = 0.25


def add_local(directory: Path, node_id: int | None, rack: str | None, *, voter: bool) -> LocalNode:
    """Define one more broker of a local cluster. With `voter`, the brokers of the cluster must be controllers."""
    nodes = found_nodes(directory)
    if voter and nodes and (is_fixed(nodes) or not any(each.is_broker and each.is_controller for each in nodes)):
        raise CommandError(f"the brokers of {directory} are no controllers, so none of them can vote")
    node = define_broker(directory, rack, node_id, taken=asyncio.run(_live_ids(nodes)))
    done(f"defined broker {node.node_id} at {node.address} in {node.path}")
    note(f"A running `ottla up` starts it by itself; without one, `ottla start {node.path}` does.")
    note(f"Then `ottla cluster balance -b {node.address}` shows what it could take over.")
    return node


async def _live_ids(nodes: Sequence[LocalNode]) -> set[int]:
    """The node ids of the running cluster, because brokers on other machines have no file here. Empty if it does not
    run.
    """
    from ottla.client.admin import Admin

    addresses = ",".join(each.address for each in nodes if each.is_broker)
    if not addresses:
        return set()
    async with Admin(client_options(addresses)) as admin:
        try:
            described = await admin.nodes.describe(fenced=True)
            quorum = await admin.voters.quorum()
        except (ClientError, ApiError):
            return set()
    return {each.node_id for each in described.brokers} | {each.node_id for each in quorum.voters}


async def seat(admin: Admin, node: LocalNode) -> None:
    """Wait until a newly defined node is up, and make it a voter."""
    await until_it_follows(admin, node.node_id, f"ottla start {node.path}")
    place = parse_address(node.controller_address)  # from its file: its registration may not be visible yet
    await add_voter(admin, node.node_id, (VoterEndpoint(CONTROLLER_LISTENER, *place),))


async def property_file(admin: Admin, address: Address, node_id: int | None, rack: str | None) -> str:
    """The server.properties of a broker on another machine, which is to listen at the address."""
    described = await admin.nodes.describe(fenced=True)
    quorum = await admin.voters.quorum()
    taken = {each.node_id for each in described.brokers} | {each.node_id for each in quorum.voters}
    if node_id is None:
        node_id = max(each.node_id for each in described.brokers) + 1
        while node_id in taken:
            node_id += 1
    if node_id in taken:
        raise CommandError(f"there is a node {node_id} already", "without --id the next free one is taken")
    controllers = {each: at[0] for each, at in sorted(quorum.endpoints.items()) if at}
    if not controllers:
        raise CommandError(
            "no controller says where other nodes reach it, so none can join",
            "a node that was started alone stays alone: `ottla up --brokers 3` starts a cluster (docs/cluster.md)",
        )
    levels = {each.name: each.finalized or 0 for each in await admin.nodes.features()}
    name = next(iter(controllers.values())).listener
    values = {
        PROCESS_ROLES.name: "broker",
        NODE_ID.name: str(node_id),
        LISTENERS.name: f"PLAINTEXT://{address}",
        ADVERTISED_LISTENERS.name: f"PLAINTEXT://{address}",
        CONTROLLER_LISTENER_NAMES.name: name,
        LISTENER_SECURITY_PROTOCOL_MAP.name: f"{name}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    if not levels.get(KRAFT_VERSION, 0):
        voters = [f"{each}@{at.host}:{at.port}" for each, at in controllers.items()]
        values[CONTROLLER_QUORUM_VOTERS.name] = ",".join(voters)
    else:
        values[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS.name] = ",".join(
            f"{at.host}:{at.port}" for at in controllers.values()
        )
    if rack is not None:
        values[BROKER_RACK.name] = rack
    values[LOG_DIRS.name] = f"ottla-data-{node_id}"
    return "".join(f"{name}={value}\n" for name, value in values.items())


async def remove(admin: Admin, node_id: int, directory: Path) -> None:
    """Hand over a drained broker's seat in the quorum, stop it (or wait until it is stopped), and unregister it."""
    handover = await plan_handover(admin, node_id)
    if handover is not None:
        await tell_handover(admin, handover)
    await admin.cluster.refresh()  # the broker that is asked may be the one that goes: know the others before
    brokers = (await admin.nodes.describe(fenced=True)).brokers
    address = next((str(each.address) for each in brokers if each.node_id == node_id), None)
    local = next((each for each in found_nodes(directory) if each.node_id == node_id), None)
    if local is not None and local.address == address:
        note(f"its property file is now {retire(local)}: a running `ottla up` stops it")
    if not await _is_away(admin, node_id):
        if local is None:
            note(f"Stop node {node_id} now (SIGTERM); waiting until it is away. Ctrl-C leaves it drained but known.")
        with err().status(f"waiting for node {node_id} to stop"):
            while True:
                if await _is_away(admin, node_id):
                    break
                await asyncio.sleep(_LOOK_S)
    await admin.nodes.unregister(node_id)
    done(f"broker {node_id} is forgotten")
    others = [str(each.address) for each in brokers if each.node_id != node_id and not each.is_fenced]
    if others and [str(each) for each in admin.cluster.options.bootstrap] == [address]:
        note(f"Nobody is at {address} any more: -b {others[0]} (or OTTLA_BOOTSTRAP) finds the cluster.")


async def _is_away(admin: Admin, node_id: int) -> bool:
    brokers = (await admin.nodes.describe(fenced=True)).brokers
    return all(each.is_fenced for each in brokers if each.node_id == node_id)
