"""How a fresh node learns which cluster it joins, when all it was told is where controllers can be found."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from ottla.client.connection import Address, Connection
from ottla.client.errors import ClientError
from ottla.log.checkpoint import read_meta_properties
from ottla.log.disk import Disk
from ottla.model.limits import JOIN_RETRY_MS, PEER_CONNECT_MS
from ottla.server.configs import Configs
from ottla.server.quorum_settings import bootstrap_servers
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

log = logging.getLogger(__name__)

_CONTROLLERS = 2  # the kind of endpoints that controllers are asked for


async def cluster_to_join(configs: Configs, make_disk: Callable[[str], Disk]) -> str | None:
    """The cluster of the bootstrap servers; None if this node needs none: it belongs to one, or knows its voters."""
    settings = configs.broker
    servers = bootstrap_servers(settings)
    if not servers or settings.get("controller.quorum.voters") or settings.get("ottla.cluster.id"):
        return None
    if any(read_meta_properties(make_disk(path)) is not None for path in configs.log_dirs()):
        return None
    return await _ask([Address(server.host, server.port) for server in servers])


async def _ask(addresses: Sequence[Address]) -> str:
    told = False
    while True:
        for address in addresses:
            try:
                return await _cluster_of(address)
            except ClientError as error:
                if not told:
                    log.warning("waiting for a controller that says which cluster this node joins: %s", error)
                told = True
        await asyncio.sleep(JOIN_RETRY_MS / 1000)


async def _cluster_of(address: Address) -> str:
    connection = await Connection.open(address, connect_timeout_ms=PEER_CONNECT_MS)
    try:
        request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS)
        answer = await connection.request(request, DescribeClusterResponse)
        if answer.error_code:
            raise ClientError(f"{address} refused DescribeCluster with error {answer.error_code}")
        return answer.cluster_id
    finally:
        connection.close()
