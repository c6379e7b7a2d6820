"""Late records of a pipeline: each is a letter exactly once, whatever happened to the run that has dropped it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.shops import SHOP, WINDOWS, Shop
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking
from ottla.spark.pipelines import latecomers
from ottla.spark.pipelines.latecomers import Latecomers
from ottla.spark.streams.late import LateTo

pytestmark = [pytest.mark.spark]

UNIQUE = """
from ottla.spark import dedup, late_to

@pipeline.query(output="{copies}", late=late_to("{late}"))
def unique():
    parsed = F.from_json(F.col("value").cast("string"), "id long, amount long")
    orders = topic("{orders}").select("timestamp", parsed.alias("o")).select("timestamp", "o.*")
    return dedup(orders, "amount", within="5 seconds")
"""


@pytest.fixture
def client(node: OttlaNode, spark: Any) -> Iterator[Blocking]:
    spark.conf.set("spark.ottla.bootstrap", node.bootstrap)
    with Blocking(node.bootstrap) as made:
        yield made


def run(shop: Shop, spark: Any, client: Blocking) -> dict[str, int]:
    """One run over what is there now; up to which batch late records are seen to."""
    from ottla.cli.pipeline import parts

    loaded = parts.load(shop.file)
    built = parts.build(loaded, spark)
    settings = parts.settings(str(shop.directory / "checkpoints"), once=True)
    runner = parts.runner(loaded, spark, client, settings, shop.file, lambda event: None)
    runner.claim()
    return runner.run(built).late


def letters(shop: Shop) -> list[int]:
    """The ids of late orders."""
    return [each["id"] for each in shop.values("late")]


def test_late_records_are_letters_once(
    node: OttlaNode, spark: Any, client: Blocking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = SHOP.partition("@pipeline")[0]
    shop = Shop(tmp_path, node, client, "latecomers", head + WINDOWS)
    checkpoint = f"{tmp_path}/checkpoints/windows/0"
    shop.send_at((101, "a", 1), (130, "b", 2))
    begun = run(shop, spark, client)
    shop.send_at((102, "a", 4), (126, "b", 8), (160, "b", 16))
    with monkeypatch.context() as killed:
        killed.setattr(Latecomers, "send", lambda self: None)  # as when the driver is killed before the letters
        assert run(shop, spark, client) == begun
    assert letters(shop) == []
    done = run(shop, spark, client)  # nothing new, but something left
    assert letters(shop) == [2] and done[checkpoint] > begun[checkpoint]
    shop.send_at((103, "a", 32), (104, "c", 64))
    run(shop, spark, client)
    run(shop, spark, client)
    assert letters(shop) == [2, 5, 6]
    counted = {(each["user"], each["start"]): each["n"] for each in shop.values("windows")}
    assert counted == {("a", 100): 1, ("b", 120): 8, ("b", 130): 2}

    shutil.rmtree(checkpoint)  # from here on it is another query, which begins with all there is
    assert run(shop, spark, client)[checkpoint] < done[checkpoint]
    shop.send_at((105, "a", 128), (200, "b", 256))
    run(shop, spark, client)
    assert letters(shop) == [2, 5, 6, 7]
    assert len(shop.read("windows")) == 3 + 5  # all orders but the last counted, none of them late


def test_late_records_without_windows(node: OttlaNode, spark: Any, client: Blocking, tmp_path: Path) -> None:
    shop = Shop(tmp_path, node, client, "unique", SHOP.partition("@pipeline")[0] + UNIQUE)
    shop.send_at((101, "a", 1), (102, "b", 1), (130, "b", 2))
    run(shop, spark, client)
    shop.send_at((125, "a", 4), (126, "b", 8), (127, "b", 2))  # the watermark is at 125, and what is there is late
    run(shop, spark, client)
    assert letters(shop) == [3]
    assert [each["amount"] for each in sorted(shop.values("copies"), key=lambda each: int(each["id"]))] == [1, 2, 8]


def test_a_batch_is_done_when_its_letters_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Spark: what is due is remembered over failures, and over reports that never came."""
    written: list[int] = []
    failures = [ConnectionError("no answer")]

    def send(spark: Any, rule: Any, checkpoint: str, batch: int, by: str) -> None:
        if batch == 8 and failures:
            raise failures.pop()
        written.append(batch)

    monkeypatch.setattr(latecomers, "send_late", send)
    monkeypatch.setattr(latecomers, "finished_batches", lambda spark, checkpoint: 4)
    late = Latecomers(None, {"/c": 2})  # type: ignore[arg-type]
    late.watch("q", LateTo("letters"), "/c")
    late.note("q", 5, 0)
    late.note("q", 8, 1)  # nothing was heard of 6 and 7
    with pytest.raises(ConnectionError):
        late.send()
    assert (written, late.done) == ([3, 4, 6, 7], {"/c": 7})
    late.note("q", 9, 0)
    late.send()
    assert (written, late.done) == ([3, 4, 6, 7, 8], {"/c": 9})
    late.note("q", 9, 1)  # once more, after a restart
    late.note("q", 10, 0)
    late.send()
    assert (written, late.done) == ([3, 4, 6, 7, 8, 9], {"/c": 10})
