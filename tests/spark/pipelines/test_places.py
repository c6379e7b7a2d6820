"""A pipeline wherever Spark runs: on a standalone cluster and through Spark Connect, by the command; contents exact."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.spark.shops import SHOP, SUMS, WINDOWS, Shop, events
from tests.support.processes.node import OttlaNode
from tests.support.spark import sessions as sparks

from ottla.client.blocking.blocking import Blocking

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
]
ON_CLUSTER = ("spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", "spark.sql.shuffle.partitions=2")


@pytest.fixture
def place(elsewhere: Callable[[str], Any]) -> Callable[[str], Sequence[str]]:
    """How the command is told where Spark is."""

    def find(kind: str) -> Sequence[str]:
        if kind == "connect":
            return ("--remote", elsewhere(kind).remote)
        settings = [*ON_CLUSTER, *(f"{name}={value}" for name, value in sparks.executors().items())]
        return ("--master", elsewhere(kind).master, *(part for each in settings for part in ("--conf", each)))

    return find


@pytest.mark.parametrize("kind", ["standalone", "connect"])
def test_a_pipeline_runs_there_and_goes_on(
    kind: str, place: Callable[[str], Sequence[str]], node: OttlaNode, tmp_path: Path
) -> None:
    on = place(kind)
    with Blocking(node.bootstrap) as client:
        shop = Shop(tmp_path, node, client, f"there-{kind}", SHOP + SUMS + WINDOWS)
        try:
            shop.send_at((101, "a", 1), (109, "a", 2), (130, "b", 4))
            first = shop.start("--once", on=on)
            assert first.wait(240) == 0, first.output[-3000:]
            assert shop.ids() == [0, 1, 2]
            assert shop.values("windows") == [{"n": 3, "start": 100, "user": "a"}]  # the watermark is at 125
            assert shop.values("late") == []

            shop.send_at((105, "a", 8), (126, "b", 16), (200, "c", 32))  # the first is too late
            second = shop.start("--once", on=on)
            assert second.wait(240) == 0, second.output[-3000:]
        finally:
            for process in shop.processes:
                process.kill()
        assert shop.ids() == list(range(6))
        assert {(each["user"], each["start"]): each["n"] for each in shop.values("windows")} == {
            ("a", 100): 3,
            ("b", 120): 16,
            ("b", 130): 4,
        }
        assert len(shop.read("windows")) == 3
        (letter,) = shop.read("late")
        assert (letter.key, letter.value) == (b"a", b'{"id": 3, "amount": 8}')
        assert dict(letter.headers)["ottla.dlq.group"] == f"{shop.name}-windows".encode()
        latest = {each.key: json.loads(each.value or b"")["total"] for each in shop.read("sums")}
        assert latest == {b"a": 11, b"b": 20, b"c": 32}
        assert sum(each["rows"] for each in events(second, "progress") if each["query"].endswith("-copies")) == 3
        status = shop.status()
        assert (status["state"], status["error"]) == ("stopped", None)
        assert status["spark"] == ("connect" if kind == "connect" else on[1])
        lags = client.admin.groups.lag(f"spark-{shop.name}-copies")
        assert [each.records for each in lags] == [0, 0]
