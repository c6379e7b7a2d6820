"""A bounded sample of `make chaos`: a cluster of three is broken for a while, and nothing that was promised is lost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from bench.cluster.whole import create, until_in_sync
from confluent_kafka import Producer
from tests.chaos import network
from tests.chaos.faults import AT_LEAST, fill
from tests.chaos.runner import run, small_disk
from tests.support.processes.clusters import OttlaCluster, running

SECONDS = 10
SECURE = ("cut off", "cut one link", "deafen", "kill", "renew its certificate")


def test_broken_cluster_keeps_its_promises(tmp_path: Path) -> None:
    missing = network.unavailable()
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    judge(tmp_path, seed=26)  # a kill, and two kinds of cuts


def test_secure_cluster_whose_links_are_cut_by_proxies_keeps_its_promises(tmp_path: Path) -> None:
    """Without a plaintext port, with an authorizer, and with a new certificate while it is broken."""
    judge(tmp_path, seed=3329, cut_by="proxy", only=SECURE, secure=True)  # a cut for longer than a session


def judge(
    directory: Path, *, seed: int, cut_by: str | None = None, only: Sequence[str] = (), secure: bool = False
) -> None:
    said: list[str] = []
    verdict = run("ottla", directory, SECONDS, seed, said.append, cut_by=cut_by, only=only, secure=secure)
    assert not verdict.problems, (verdict.problems, said)
    assert verdict.facts["faults"] >= AT_LEAST
    assert verdict.facts["writers: acknowledged"] > 100


def test_node_whose_disk_was_full_comes_back_by_itself(tmp_path: Path) -> None:
    with small_disk(tmp_path / "node-2" / "data") as mounted:
        if not mounted:
            reason = "a tmpfs cannot be mounted here (needs root)"
            pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
        with running(OttlaCluster(tmp_path, properties={"log.segment.bytes": "1048576"})) as cluster:
            create(cluster, ["t"], 3, 3)
            until_in_sync(cluster, ["t"], 3)
            ballast = cluster.data_directory(2) / "ballast"
            fill(ballast)
            producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
            for number in range(300):
                producer.produce("t", bytes(10_000), partition=number % 3)
            assert producer.flush(60) == 0  # two of three are enough
            ballast.unlink()
            until_in_sync(cluster, ["t"], 3)
            assert cluster.is_alive(2)
