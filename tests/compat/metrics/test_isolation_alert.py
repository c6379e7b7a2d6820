"""A node that is cut off from the others does not learn what changes: its alert fires, and clears when it is back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.proxy import Proxies
from tests.compat.metrics.watching import MeteredCluster, watched
from tests.server.talk import create
from tests.support import tools
from tests.support.requests.raw import RawConnection

ALERTS = {"OttlaMetadataBehind", "OttlaBrokerFenced"}
PARTITIONS = 1100  # a metadata record each


@pytest.mark.slow
def test_a_node_that_is_cut_off(tmp_path: Path) -> None:
    tools.require(tools.missing_prometheus())
    proxies = Proxies([1, 2, 3]).start()
    try:
        cluster = MeteredCluster(tmp_path / "cluster", place=proxies)
        proxies.watch(cluster.started)
        with watched(tmp_path, cluster) as watching:
            controller = cluster.controller()
            lost = next(id for id in cluster.ids if id != controller)
            for other in set(cluster.ids) - {lost}:
                proxies.cut(lost, other)
                proxies.cut(other, lost)
            # Not by a client that chooses a broker itself: it may choose the lost one, which reaches no controller.
            with RawConnection(cluster.address(controller)) as connection:
                create(connection, "large", PARTITIONS)
            watching.until_fire(ALERTS)
            proxies.heal()
            watching.until_clear(ALERTS)
    finally:
        proxies.stop()
