"""Real nodes: one loses its whole directory while another lags and the third, which alone has it all, is down.

`ottla cluster` tells who is in doubt, with a leader and without one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, invoke
from tests.server.three import create, until
from tests.support.processes.clusters import METADATA_VERSION, OttlaCluster, running

from ottla.cluster.store import DOUBT
from ottla.operations.cluster import view as cluster_view
from ottla.wire.messages.topics.metadata import MetadataRequest

ALONE = "no vote from this node"


def topics(cluster: Any) -> set[str]:
    answer = cluster.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), METADATA_VERSION)
    return {topic.name for topic in answer.topics}


def said(cluster: Any, id: int, words: str) -> int:
    """How often, in all its lives."""
    return (cluster.directory / f"node-{id}" / "ottla.err").read_text().count(words)


def ottla_cluster(*words: str, bootstrap: str) -> Run:
    return invoke("cluster", *words, "-b", bootstrap)


def in_doubt(cluster: OttlaCluster) -> list[int]:
    seen = ottla_cluster("quorum", "--json", bootstrap=cluster.bootstrap)
    return [each["node"] for each in seen.json if each["in_doubt"]] if seen.code == 0 else []


def test_a_lost_disk_loses_no_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(OttlaCluster(tmp_path, properties={"min.insync.replicas": "1"})) as cluster:
        assert isinstance(cluster, OttlaCluster)
        leader = cluster.controller()
        lost, lagging = (id for id in cluster.ids if id != leader)
        create(cluster, "seen", [leader, lost, lagging])
        cluster.kill(lagging)
        create(cluster, "not-seen-by-all", [leader, lost])
        for id in (leader, lost):
            cluster.kill(id)
        shutil.rmtree(cluster.data_directory(lost))
        with ThreadPoolExecutor(2) as pool:
            starting = [pool.submit(cluster.start_node, id) for id in (lost, lagging)]
            until(lambda: said(cluster, lost, ALONE))
            assert (cluster.data_directory(lost) / DOUBT).exists()
            with monkeypatch.context() as brisk:
                brisk.setattr(cluster_view, "_LEADER_S", 0.5)
                why = ottla_cluster("quorum", bootstrap=cluster.controllers)
            assert why.code == 1 and f"no answer from voter {leader}; voter {lost} in doubt" in why.err, why.err
            cluster.start_node(leader)
            for each in starting:
                each.result()
        assert {"seen", "not-seen-by-all"} <= topics(cluster)
        until(lambda: said(cluster, lost, "this node votes in the quorum from now on") == 2)
        assert not (cluster.data_directory(lost) / DOUBT).exists()
        assert in_doubt(cluster) == []
        tells_while_somebody_leads(cluster, lost)


def tells_while_somebody_leads(cluster: OttlaCluster, lost: int) -> None:
    """The voters that are left go on, and whoever looks is told that one more must not be stopped now."""
    cluster.kill(lost)
    shutil.rmtree(cluster.data_directory(lost))
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(cluster.start_node, lost)
        until(lambda: in_doubt(cluster) == [lost])
        plain = ottla_cluster("quorum", bootstrap=cluster.controllers)
        status = ottla_cluster("status", "--json", bootstrap=cluster.bootstrap)
        if (cluster.data_directory(lost) / DOUBT).exists():  # not over meanwhile
            assert plain.code == 0 and f"in doubt: {lost}" in plain.err and "Stop no other controller" in plain.err
            assert status.code == 1 and status.json["problems"]["voters_in_doubt"] == [str(lost)]
        starting.result()


def test_whoever_formats_by_hand_vouches_for_a_disk(tmp_path: Path) -> None:
    """What Kafka asks for in any case: it is the word of somebody who knows."""
    cluster = OttlaCluster(tmp_path)
    words = [sys.executable, "-m", "ottla", "format"]
    for id in (1, 2):
        file = tmp_path / f"node-{id}" / "server.properties"
        done = subprocess.run([*words, str(file), "-t", "4L6g3nShT-eMCtK--X86sw"], capture_output=True, check=True)
        assert b"formatted" in done.stdout
        assert not (cluster.data_directory(id) / DOUBT).exists()
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(cluster.start_node, (1, 2)))
        assert cluster.controller() in (1, 2), "two of three are enough"
    finally:
        cluster.stop()
