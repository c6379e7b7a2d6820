"""`ottla demo`, which is `make run`: a small shop, a real Spark, a kill -9, and books that balance."""

import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests.console.consoles import Visitor
from tests.support.waiting import COMMAND_S, until

from ottla.cli.demo.programs import DemoProgram
from ottla.cli.demo.results import SalesCount, check_windows
from ottla.cli.demo.shop import ORDERS, PAID_WITHIN_MS, PAYMENTS, SALES, Shop
from ottla.cli.demo.view import Lag, lag_text
from ottla.client.blocking.blocking import Blocking
from ottla.client.producer.options import ProducerOptions
from ottla.operations.errors import CommandError
from ottla.testing.broker import EmbeddedBroker


def test_the_books_of_the_shop_are_what_its_events_say() -> None:
    shop = Shop(seed=3, opened_ms=0, orders=3_000)
    events = list(shop.events())
    assert [each.told_ms for each in events] == sorted(each.told_ms for each in events)
    orders = {each.value["order_id"]: each.value for each in events if each.topic == ORDERS}
    paid = {each.value["order_id"]: each.value["paid_at"] for each in events if each.topic == PAYMENTS}
    assert len(orders) == 3_000
    in_time = {
        order_id for order_id, paid_at in paid.items() if 0 <= paid_at - orders[order_id]["ordered_at"] < PAID_WITHIN_MS
    }
    assert shop.sales.keys() == in_time and 0.8 < len(in_time) / 3_000 < 0.95
    assert sum(cents for _, cents in shop.revenue().values()) == sum(orders[each]["cents"] for each in in_time)
    assert list(Shop(seed=3, opened_ms=0, orders=3_000).events()) == events


def test_all_events_are_counted_before_they_are_told() -> None:
    shop = Shop(seed=3, opened_ms=0, orders=1_000)
    assert shop.event_count() == len(list(shop.events())) < 2_000
    assert shop.sales, "counting does not change the books"


@pytest.mark.parametrize(
    ("lag", "text"),
    [
        (Lag("q", None, None), "starting"),
        (Lag("q", None, None, "first batch running"), "first batch running"),
        (Lag("q", 1_200, 3.21, "first batch running"), "1,200 (3.2 s, first batch running)"),
        (Lag("q", 1_200, 3.21), "1,200 (3.2 s)"),
        (Lag("q", 0, 0.0), "0"),
    ],
)
def test_lag_says_what_a_query_does_before_its_first_batch_is_done(lag: Lag, text: str) -> None:
    assert lag_text(lag) == text


def test_wrong_totals_are_found() -> None:
    shop = Shop(seed=3, opened_ms=0, orders=1_000)
    list(shop.events())
    right = shop.revenue()
    assert check_windows(right, shop) == (len(right), sum(cents for _, cents in right.values()))
    first = min(right)
    for wrong in (
        {**right, first: (right[first][0], right[first][1] + 1)},
        {k: v for k, v in right.items() if k != first},
    ):
        with pytest.raises(CommandError, match=r"1 of .* windows are wrong"):
            check_windows(wrong, shop)


def test_markers_and_the_closing_order_are_no_sales(ottla_broker: EmbeddedBroker) -> None:
    shop = Shop(seed=3, opened_ms=0, orders=1_000)
    with Blocking(ottla_broker.bootstrap, ProducerOptions(transactional_id="demo")) as client:
        client.admin.topics.create(SALES, partitions=2)
        sales = SalesCount(client, shop, 2)
        assert sales.look() == 0
        for number, counted in ((3, 3), (5, 8), (7, 15)):
            with client.transaction():
                for order_id in range(number):
                    client.post(SALES, b"v", str(order_id).encode(), partition=order_id % 2)
            assert sales.look() == counted and sales.look() == counted
        with client.transaction() as aborted:
            client.send(SALES, b"v", b"1", partition=0)
            aborted.abort()
        with client.transaction():
            client.post(SALES, b"v", str(shop.orders).encode(), partition=1)
        assert sales.look() == 15
        offsets = client.admin.topics.bounds(SALES)
        assert sum(each.end for each in offsets.values()) > 15, "markers have offsets, too"


def test_a_program_that_says_much_is_not_stopped_by_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = tmp_path / "noisy"
    noisy.write_text("#!/bin/sh\nhead -c 200000 /dev/zero | tr '\\0' x\n")  # more than a pipe holds
    noisy.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(noisy))
    program = DemoProgram("noise", [], tmp_path / "log", listens=False)
    try:
        while not program.ended:
            time.sleep(0.02)
        assert (tmp_path / "log").stat().st_size == 200_000
    finally:
        program.stop()


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_runs_and_checks_everything(spark_tools: None, tmp_path: Path) -> None:
    words = ["demo", "--once", "--data", str(tmp_path), "--listen", "127.0.0.1:0", "--registry", "127.0.0.1:0"]
    words += ["--console", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", *words, "--orders", "2000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    begun, visitor, totals = "", None, ""
    for line in process.stdout:
        begun += line
        if "✓ metrics" in line:
            with urllib.request.urlopen(line.split()[-1], timeout=60) as answer:
                assert b"\nottla_build_info{" in answer.read(), "the node tells its metrics while the demo runs"
        if "✓ console" in line:
            visitor = Visitor(re.findall(r"http://[\d.:]+\d", line)[0])
            assert "1 of 1 brokers up" in visitor.get("/").words
        if "✓ totals" in line:
            totals = "/topics/" + line.split("/topics/")[1].strip()
        if re.search(r"[1-9][\d,]* sales,", line):
            break
    assert visitor is not None
    until(lambda: visitor.get("/pipelines/shop").text, lambda text: 'href="/topics/sales/totals"' in text)
    live = re.findall(r'data-live="([^"]*)"', visitor.get(totals).text)[0].replace("&amp;", "&")
    assert "sum of cents by country" in until(lambda: visitor.part(live).words, lambda words: "records read" in words)
    both = ("spark-shop-sales", "spark-shop-revenue")
    until(lambda: visitor.get("/groups").words, lambda words: all(each in words for each in both))
    rest, errors = process.communicate(timeout=COMMAND_S)
    told_all = begun + rest
    assert process.returncode == 0, told_all + errors
    for claim in ("node", "metrics", "registry", "console", "topics", "sales", "revenue", "done"):
        assert f"✓ {claim}" in told_all
    assert "kill -9" in told_all and "Traceback" not in errors
    _, _, following = told_all.partition("Try next")
    assert "ottla demo" in following and "ottla up" in following
    assert "127.0.0.1" not in following, "nobody serves there any more"
    (checked,) = re.findall(r"✓ sales +([\d,]+) in the topic", told_all)
    counted = re.findall(r"([\d,]+) sales,", told_all)
    assert counted[-1] == checked, "the progress and the check count the same"
    told, total = re.findall(r"([\d,]+) of ([\d,]+) events", told_all)[-1]
    shop = Shop(seed=1, opened_ms=0, orders=2_000)
    assert total == f"{len(list(shop.events())) + 202:,}", "with 200 users, the closing order and its payment"
    assert int(told.replace(",", "")) <= int(total.replace(",", ""))
