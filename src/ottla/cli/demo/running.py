"""The steps of the demo: start, feed, kill, restart, check, and print what to try next."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.demo import pipeline, results
from ottla.cli.demo.feeding import PARTITIONS, Feed, prepare
from ottla.cli.demo.programs import DemoProgram
from ottla.cli.demo.shop import DAY_MS, ORDERS, SALES, Shop
from ottla.cli.demo.view import DemoMoment, Lag, View
from ottla.cli.nodes.local_cluster import metrics_on
from ottla.cli.terminal.output import literal, out
from ottla.client.blocking.blocking import Blocking
from ottla.client.options import wall_clock_ms
from ottla.model.settings.own import OTTLA_METRICS_LISTENER
from ottla.operations.addresses import metrics_url
from ottla.operations.errors import CommandError
from ottla.server.settings.metrics_listener import metrics_place
from ottla.spark.pipelines.status import Board

if TYPE_CHECKING:
    from ottla.cli.demo.results import Windows

NAME = "shop"
QUERIES = ("sales", "revenue")
_LOOK_EVERY_S = 0.5
_GIVE_UP_S = 300.0  # without any progress
_RATE_OVER_S = 5.0


class DemoPlaces(NamedTuple):
    """The addresses, HOST:PORT, of what the demo serves."""

    node: str
    registry: str
    console: str


class _Running(NamedTuple):
    """What a pipeline is watched with while it runs."""

    client: Blocking
    feed: Feed
    sales: results.SalesCount


class Demo:
    def __init__(self, directory: Path, places: DemoPlaces, orders: int, seed: int) -> None:
        self._directory = directory
        self._places = places
        # The day before yesterday, because watermarks and retention do not depend on the current time.
        self._shop = Shop(seed, (int(time.time() * 1000) // DAY_MS - 2) * DAY_MS, orders=orders)
        self._revenue = directory / "revenue"
        self._programs: list[DemoProgram] = []
        self._began_s = time.monotonic()
        self._looks: deque[tuple[float, int, int]] = deque()

    def run(self, stay: bool) -> None:
        stopped = threading.Event()
        previous = signal.signal(signal.SIGTERM, lambda *_: _interrupt())
        try:
            self._run(stay)
            if stay:
                out().print("\nNode, registry and console go on serving; [bold]Ctrl-C[/bold] stops them.")
                stopped.wait()
        except KeyboardInterrupt:
            out().print("[dim]stopping[/dim]")
        finally:
            signal.signal(signal.SIGTERM, previous)
            for program in reversed(self._programs):
                program.stop()

    def _run(self, stay: bool) -> None:
        _headline()
        bootstrap, url = self._serve()
        with Blocking(bootstrap) as client:
            ids = prepare(client, url)
            step("topics", f"users, orders, payments, sales; Avro schemas registered with ids {sorted(ids.values())}")
            feed = Feed(client, self._shop, ids)
            running = _Running(client, feed, results.SalesCount(client, self._shop, PARTITIONS))
            feed.start()
            try:
                with View() as view:
                    self._pipeline(running, view, bootstrap, url)
            finally:
                feed.stop()
            self._check(client, url)
        self._next(bootstrap, url, stay)

    def _serve(self) -> tuple[str, str]:
        began_s = time.monotonic()
        metrics = metrics_on()
        words = ["start", "--data", str(self._directory / "log"), "--listen", self._places.node]
        words += [word for name, value in metrics.items() for word in ("--set", f"{name}={value}")]
        bootstrap = self._start("node", words).ready().split()[0]
        node_ms = (time.monotonic() - began_s) * 1000
        step("node", f"serving at [bold cyan]{literal(bootstrap)}[/bold cyan] after {node_ms:.0f} ms")
        place = metrics_place(metrics[OTTLA_METRICS_LISTENER.name])
        step("metrics", f"at [bold cyan]{literal(metrics_url(*place))}[/bold cyan]")
        words = ["registry", "--listen", self._places.registry, "-b", bootstrap, "--replication-factor", "1"]
        url = self._start("registry", words).ready()
        step("registry", f"serving at [bold cyan]{literal(url)}[/bold cyan]")
        words = ["console", "--listen", self._places.console, "-b", bootstrap, "--registry", url]
        pages = self._start("console", words).ready()
        step("console", f"look at [bold cyan]{literal(pages)}[/bold cyan]: the pipeline, its lag, topics and groups")
        step("totals", f"at [bold cyan]{literal(f'{pages}/topics/{SALES}/totals?by=country&sum=cents')}[/bold cyan]")
        return bootstrap, url

    def _start(self, name: str, words: list[str]) -> DemoProgram:
        return self._started(DemoProgram(name, words, self._directory / f"{name}.log"))

    def _started(self, program: DemoProgram) -> DemoProgram:
        self._programs.append(program)
        return program

    def _pipeline(self, running: _Running, view: View, bootstrap: str, url: str) -> None:
        """Run the pipeline, kill it half way, run it again, until the last window is written."""
        spark, feed = self._start_pipeline(bootstrap, url), running.feed

        def watch(phase: str, until: Callable[[int, Windows], bool]) -> None:
            seen, seen_s = (-1, -1), 0.0
            while True:
                now = self._look(running, phase)
                is_over = until(now.sold, now.windows)
                view.show(now, at_once=is_over)
                if is_over:
                    return
                if spark.ended:
                    raise spark.failed()
                if seen != (seen := (now.sold, len(now.windows))):
                    seen_s = time.monotonic()
                elif time.monotonic() - seen_s > _GIVE_UP_S:
                    raise CommandError(
                        f"the demo failed: {phase}, and nothing came for {_GIVE_UP_S:.0f} s",
                        hint=f"{self._directory / 'pipeline.log'} tells what the pipeline does",
                    )
                _ = feed.done  # raises the exception that stopped the feed
                time.sleep(_LOOK_EVERY_S)

        watch("the pipeline runs", lambda sold, windows: sold >= 0.25 * self._shop.orders)
        feed.go_on()
        spark.kill()
        self._programs.remove(spark)
        view.say(" [yellow]✗[/yellow] [bold]kill -9[/bold]   driver, JVM and workers of the pipeline are gone")
        spark = self._start_pipeline(bootstrap, url)
        watch("restarted from its checkpoint", lambda sold, windows: feed.done and self._is_complete(windows))
        spark.stop()
        self._programs.remove(spark)

    def _start_pipeline(self, bootstrap: str, url: str) -> DemoProgram:
        words = ["pipeline", "run", str(pipeline.__file__), "--name", NAME, "--json", "-b", bootstrap]
        words += ["--registry", url, "--checkpoint", str(self._directory / "checkpoint"), "--master", "local[2]"]
        environment = {pipeline.REVENUE_DIRECTORY: str(self._revenue)}
        log = self._directory / "pipeline.log"
        return self._started(DemoProgram("pipeline", words, log, environment, listens=False))

    def _is_complete(self, windows: Windows) -> bool:
        return len(windows) >= len(self._shop.revenue())

    def _look(self, running: _Running, phase: str) -> DemoMoment:
        now_s, feed = time.monotonic(), running.feed
        sold = running.sales.look()
        self._looks.append((now_s, feed.told, sold))
        while now_s - self._looks[0][0] > _RATE_OVER_S:
            self._looks.popleft()
        then_s, then_told, then_sold = self._looks[0]
        passed_s = max(now_s - then_s, _LOOK_EVERY_S)
        return DemoMoment(
            phase,
            feed.told,
            feed.total,
            (feed.told - then_told) / passed_s,
            sold,
            (sold - then_sold) / passed_s,
            self._lags(running.client),
            results.windows(self._revenue),
        )

    def _lags(self, client: Blocking) -> tuple[Lag, ...]:
        status = Board(client).all(wall_clock_ms()).get(NAME)
        phases = {each["query"]: each.get("phase") for each in status.queries} if status is not None else {}
        return tuple(self._lag(client, query, phases.get(f"{NAME}-{query}")) for query in QUERIES)

    def _lag(self, client: Blocking, query: str, phase: str | None) -> Lag:
        lags = client.admin.groups.lag(f"spark-{NAME}-{query}")
        known = [each for each in lags if each.records is not None]
        if not known:
            return Lag(query, None, None, phase)
        return Lag(query, sum(each.records or 0 for each in known), max(each.seconds or 0.0 for each in known), phase)

    def _check(self, client: Blocking, url: str) -> None:
        sold = results.check_sales(client, url, self._shop)
        step("sales", f"{sold:,} in the topic, each exactly once, as the shop counted them")
        count, cents = results.check_windows(results.windows(self._revenue), self._shop)
        step("revenue", f"{cents / 100:,.2f} in {count} windows of Parquet, equal to the shop's books to the cent")
        step("done", f"in {time.monotonic() - self._began_s:.0f} s")

    def _next(self, bootstrap: str, url: str, stay: bool) -> None:
        ottla = "ottla" if shutil.which("ottla") else os.path.relpath(Path(sys.executable).with_name("ottla"))
        out().print("\n[bold]Try next[/bold]")
        for words in _while_serving(bootstrap, url) if stay else _ON_ONES_OWN:
            out().print(f"   [cyan]{literal(ottla)} {literal(words)}[/cyan]")
        out().print(f"   [dim]the pipeline is[/dim] {literal(os.path.relpath(pipeline.__file__))}")


def _while_serving(bootstrap: str, url: str) -> tuple[str, ...]:
    query = "select value.country, count(*) from topic('%s') group by 1"
    return (
        f'sql "{query % SALES}" -b {bootstrap} --registry {url}',
        f"group describe spark-{NAME}-sales -b {bootstrap}",
        f"schema show {ORDERS}-value --registry {url}",
        f"consume {ORDERS} --from-beginning -n 3 -b {bootstrap}",
    )


# Suggestions for when the node of the demo is gone: commands that need no node, or start one.
_ON_ONES_OWN = (
    "demo                # at a terminal, without ONCE=1: its node, registry and console go on serving",
    "up                  # a node and a registry of your own",
    f"pipeline check {os.path.relpath(pipeline.__file__)}",
)


def _headline() -> None:
    out().print("[bold]Ottla[/bold]: a shop, the log, a schema registry, and a pipeline on Spark.\n")


def step(name: str, text: str) -> None:
    """Print a line of the demo."""
    out().print(f" [green]✓[/green] [bold]{name:<9}[/bold] {text}")


def _interrupt() -> None:
    raise KeyboardInterrupt
