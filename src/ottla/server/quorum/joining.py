"""How a fresh node finds its cluster if only `controller.quorum.bootstrap.servers` is configured.

The node asks these controllers for the cluster id. If all of them are the node itself, as in Kafka's own
server.properties, no other node can answer: then it is the first controller of a new cluster, for which Kafka requires
`kafka-storage format --standalone`. This does not apply if the cluster id is configured: that cluster may have other
voters, and only this disk may be empty.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from ottla.client.connection import Address, Connection
from ottla.client.errors import ClientError
from ottla.client.security.security import Security
from ottla.log.files.checkpoint import read_meta_properties
from ottla.log.files.disk import Disk, StorageError
from ottla.model.ids import BitSource, random_uuid, uuid_text
from ottla.model.limits import JOIN_RETRY_MS, PEER_CONNECT_MS
from ottla.model.settings.controller import (
    CONTROLLER_QUORUM_BOOTSTRAP_SERVERS,
    CONTROLLER_QUORUM_VOTERS,
    METADATA_LOG_DIR,
)
from ottla.model.settings.own import OTTLA_CLUSTER_ID
from ottla.raft.voters import Voter, VoterSet
from ottla.server.quorum.settings import bootstrap_servers, is_only_bootstrap, own_endpoints
from ottla.server.security.peer_security import towards_controllers
from ottla.server.settings.configs import Configs
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.formatting import format_directories, initial_levels
from ottla.server.storage.identity import IdentityError
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest

log = logging.getLogger(__name__)

_CONTROLLERS = 2  # DescribeCluster's endpoint type: controllers


async def cluster_to_join(configs: Configs, make_disk: Callable[[str], Disk]) -> str | None:
    """Return the cluster id of the bootstrap servers.

    None if this node needs none: it belongs to a cluster, knows its voters, or is the first node of its own cluster.
    """
    disks = {path: make_disk(path) for path in configs.log_dirs()}
    if not _is_without_cluster(configs, disks) or is_only_bootstrap(configs.broker):
        return None
    addresses = [Address(server.host, server.port) for server in bootstrap_servers(configs.broker)]
    return await _ask(addresses, towards_controllers(configs.node))


def begin_cluster(configs: Configs, directories: Sequence[DataDirectory], now_ms: int, rng: BitSource) -> None:
    """Format the directories of a first controller, as `ottla format --standalone` does; do nothing on any
    other node.
    """
    settings = configs.broker
    disks = {directory.path: directory.disk for directory in directories}
    if not is_only_bootstrap(settings) or not _is_without_cluster(configs, disks):
        return
    missing = [path for path in configs.log_dirs() if path not in disks]
    if missing:
        raise IdentityError(f"{missing[0]} cannot be used: no new cluster is begun as long as this one's may lie there")
    home = settings[METADATA_LOG_DIR] or configs.log_dirs()[0]
    cluster_id = uuid_text(random_uuid(rng))
    format_directories(
        list(disks.items()),
        home,
        node_id=configs.node_id,
        cluster_id=cluster_id,
        voters=VoterSet([Voter(configs.node_id, random_uuid(rng), own_endpoints(settings))]),
        now_ms=now_ms,
        rng=rng,
        levels=initial_levels(None, (), dynamic=True),
    )
    log.info(
        "controller.quorum.bootstrap.servers names nobody but node %d: formatted as the first controller of the new "
        "cluster %s, as by `ottla format --standalone`",
        configs.node_id,
        cluster_id,
    )


def _is_without_cluster(configs: Configs, disks: Mapping[str, Disk]) -> bool:
    settings = configs.broker
    if bool(settings[CONTROLLER_QUORUM_VOTERS]) or bool(settings[OTTLA_CLUSTER_ID]):
        return False
    if not settings[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS]:
        return False
    return not any(map(_is_formatted, disks.values()))


def _is_formatted(disk: Disk) -> bool:
    try:
        return read_meta_properties(disk) is not None
    except StorageError:
        return False  # unknown; opening the directory reports the error


async def _ask(addresses: Sequence[Address], security: Security | None) -> str:
    told = False
    while True:
        for address in addresses:
            try:
                return await _cluster_of(address, security)
            except ClientError as error:
                if not told:
                    log.warning(
                        "waiting for a controller that says which cluster this node joins: %s. Should this node be "
                        "the first controller: `ottla format --standalone` makes it that",
                        error,
                    )
                told = True
        await asyncio.sleep(JOIN_RETRY_MS / 1000)


async def _cluster_of(address: Address, security: Security | None) -> str:
    connection = await Connection.open(address, connect_timeout_ms=PEER_CONNECT_MS, security=security)
    try:
        request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS)
        answer = await connection.request(request)
        if answer.error_code:
            raise ClientError(f"{address} refused DescribeCluster with error {answer.error_code}")
        return answer.cluster_id
    finally:
        connection.close()
