"""`ottla group explain` when a broker dies: a partition without a leader, and a coordinator that moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.conftest import invoke
from tests.cli.explain.actors import GROUP
from tests.support.processes.clusters import OttlaCluster
from tests.support.waiting import until

NODES = (1, 2, 3)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaCluster]:
    cluster = OttlaCluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_broker_that_dies(cluster: OttlaCluster) -> None:
    env = {"OTTLA_BOOTSTRAP": cluster.bootstrap}

    def ottla(*arguments: str, stdin: str | None = None) -> str:
        done = invoke(*arguments, stdin=stdin, env=env)
        assert done.code == 0, done.err
        return done.out

    def explained() -> Any:
        done = invoke("group", "explain", GROUP, "--json", "-s", "0.2", env=env)
        return done.json if done.code == 0 else {"causes": [], "coordinator": None}

    ottla("topic", "create", "orders", "-p", "3", "-r", "1")
    ottla("produce", "orders", "-K", ":", stdin="".join(f"k{number}:v\n" for number in range(300)))
    ottla("consume", "orders", "-g", GROUP, "--from-beginning", "-n", "10")
    ottla("group", "reset-offsets", GROUP, "--topic", "orders", "--to", "earliest", "--execute")  # all have an offset
    before = explained()
    assert [each["cause"] for each in before["causes"]] == ["no_consumer"]
    assert {each["kind"] for each in before["events"]} >= {"joined", "rebalance_ended", "left", "empty"}
    dead = before["coordinator"]
    (partition,) = (each for each in range(3) if cluster.leader_of("orders", each) == dead)
    cluster.kill(dead)
    after = until(explained, lambda found: "no_leader" in [each["cause"] for each in found["causes"]])
    first, second = after["causes"]
    assert (first["cause"], first["partitions"]) == ("no_leader", [f"orders-{partition}"])
    assert (second["cause"], f"orders-{partition}" in second["partitions"]) == ("no_consumer", False)
    assert after["coordinator"] in set(NODES) - {dead}
    assert (after["events"], after["remembered_since_ms"] > before["remembered_since_ms"]) == ([], True)
