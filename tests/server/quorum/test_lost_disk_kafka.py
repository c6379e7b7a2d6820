"""A controller of ours, in a quorum of Kafka's, that loses its disk: it reads from Kafka's leader, and votes again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.server.three import until
from tests.support.processes.clusters import Member, MixedCluster, running

from ottla.cluster.store import DOUBT

pytestmark = pytest.mark.compat
OURS = 3


def test_doubt_ends_under_a_leader_of_kafkas(tmp_path: Path) -> None:
    members = [Member("kafka", "controller"), Member("kafka", "controller"), Member("ottla", "broker,controller")]

    def told() -> list[int]:
        """How often it formatted its directory, and how often it said that it votes."""
        said = (tmp_path / f"node-{OURS}" / "ottla.err").read_text()
        return [said.count(words) for words in ("storage.identity: formatting", "votes in the quorum from now on")]

    with running(MixedCluster(tmp_path, members, properties={"offsets.topic.replication.factor": "1"})) as cluster:
        until(lambda: told() == [1, 1])
        assert not (cluster.data_directory(OURS) / DOUBT).exists()
        cluster.kill(OURS)
        shutil.rmtree(cluster.data_directory(OURS))
        cluster.start_node(OURS)
        assert cluster.controller() in (1, 2)
        until(lambda: told() == [2, 2])
        assert not (cluster.data_directory(OURS) / DOUBT).exists()
