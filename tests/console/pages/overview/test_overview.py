"""The overview of a node: figures, charts, health with reasons, and what changed lately."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.console.consoles import Visitor, running_console
from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import until, until_async

from ottla.client.blocking.blocking import Blocking
from ottla.client.security.security import as_security
from ottla.console.access import Access
from ottla.console.options import ConsoleOptions
from ottla.console.sampling.health import ClusterHealth
from ottla.console.sampling.history import ClusterHistory
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSOLE_SAMPLE_S", 1)
    monkeypatch.setattr(limits, "CONSOLE_SLOW_EVERY", 1)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A node that tells its metrics."""
    settings = {"ottla.metrics.listener": f"127.0.0.1:{free_ports(1)[0]}"}
    with EmbeddedBroker(tmp_path_factory.mktemp("measured"), settings) as broker:
        yield broker


@pytest.fixture
def guest(measured: EmbeddedBroker) -> Iterator[Visitor]:
    with running_console(ConsoleOptions(measured.bootstrap, port=0, read_only=True)) as console:
        yield Visitor(console.url)


def test_figures_and_charts_show_what_flows(measured: EmbeddedBroker, guest: Visitor) -> None:
    shown = guest.get("/")
    assert shown.status == 200
    assert "1 of 1 brokers up" in shown.words and "node 1 controller" in shown.words
    with Blocking(measured.bootstrap) as client:

        def flows() -> str:
            client.send("orders", b"x" * 1000)
            return guest.part("/overview/flow").words

        drawn = until(flows, lambda words: "written" in words and "B/s" in words and "measuring" not in words)
    assert "No node tells its metrics" not in drawn
    text = guest.part("/overview/flow").text
    for title in ("Bytes", "Records written", "99th percentile", "Requests"):
        assert title in text
    assert text.count("<polyline") >= 4
    assert "written" in guest.part("/overview/now").words


def test_changes_are_told(measured: EmbeddedBroker, guest: Visitor) -> None:
    guest.get("/")
    with Blocking(measured.bootstrap) as client:
        guest.part("/overview/now")
        client.admin.topics.create("made-now", partitions=1)
        until(lambda: guest.part("/overview/flow").words, lambda words: "topic made-now was created" in words)
        client.admin.topics.add_partitions("made-now", 3)
        until(lambda: guest.part("/overview/flow").words, lambda words: "has 3 partitions, had 1" in words)
        client.admin.configs.set(Resource.topic("made-now"), {"retention.ms": "12345"})
        told = "topic made-now: retention.ms is '12345'"
        until(lambda: guest.part("/overview/flow").words, lambda words: told in words)
        client.admin.topics.delete("made-now")
        until(lambda: guest.part("/overview/flow").words, lambda words: "topic made-now was deleted" in words)


def test_a_hostile_group_is_text(measured: EmbeddedBroker, guest: Visitor) -> None:
    with Blocking(measured.bootstrap) as client:
        client.send("behind", b"1")
        seen = guest.part("/overview/now").text  # from now on changes are told
        until(lambda: guest.part("/overview/now").text, lambda text: text != seen)
        client.send("behind", b"2")
        client.admin.groups.set_offsets(HOSTILE, {TopicPartition("behind", 0): 1})
    charts = until(lambda: guest.part("/overview/flow").text, lambda text: "alert(1)" in text)
    for text in (charts, guest.get("/").text):
        assert "<script>alert" not in text and "\u202e" not in text


def test_health_says_what_why_and_what_to_do(measured: EmbeddedBroker, guest: Visitor) -> None:
    """A topic whose min.insync.replicas no partition can reach takes no records with acks=all."""
    with Blocking(measured.bootstrap) as client:
        client.admin.topics.create("unwritable", partitions=1, configs={"min.insync.replicas": "2"})
    guest.get("/?anew=1")
    found = until(lambda: guest.part("/overview/health").words, lambda words: "unwritable" in words)
    assert "problem" in found and "Do: " in found and "check " in found


def test_sampling_ends_when_nobody_looks(measured: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSOLE_UNWATCHED_S", 1)

    async def watch() -> None:
        access = Access(ConsoleOptions(measured.bootstrap))
        try:
            history = ClusterHistory.of(access)
            await history.look()
            assert history.is_sampling and history.now is not None
            await until_async(lambda: _value(history.is_sampling), lambda sampling: not sampling)
            await history.look()
            assert history.is_sampling, "the next look begins anew"
        finally:
            await access.close()
        await until_async(lambda: _value(history.is_sampling), lambda sampling: not sampling)

    asyncio.run(watch())


def test_a_look_needs_no_thread_of_the_event_loop(measured: EmbeddedBroker) -> None:
    """All of those are taken, as by names of hosts that do not resolve."""

    async def watch() -> None:
        loop, freed = asyncio.get_running_loop(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        taken = loop.run_in_executor(None, freed.wait, 60)
        access = Access(ConsoleOptions(measured.bootstrap))
        try:
            history, health = ClusterHistory.of(access), ClusterHealth.of(access)
            await history.look()
            assert history.has_metrics
            await health.look()
            await until_async(lambda: _value(health.is_under_way), lambda under_way: not under_way)
            assert health.failure == "" and health.examination is not None
        finally:
            await access.close()
            freed.set()
            await taken

    asyncio.run(watch())


async def _value(value: bool) -> bool:
    return value


def test_a_user_without_rights_sees_what_is_not_known(tmp_path: Path) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        password = broker.add_user("weak", "weak-password")
        options = ConsoleOptions(broker.bootstrap, port=0, security=as_security(broker.security), signs_in=True)
        with running_console(options) as console:
            visitor = Visitor(console.url)
            shown = visitor.send("/sign-in", "/sign-in", user="weak", password=password)
            assert (shown.status, "Overview" in shown.words) == (200, True)
            assert "Not known" in shown.words


@pytest.mark.slow
def test_a_real_kafka(real_kafka: RealKafka) -> None:
    with running_console(ConsoleOptions(real_kafka.bootstrap, port=0)) as console:
        guest = Visitor(console.url)
        shown = guest.get("/")
        assert (shown.status, "1 of 1 brokers up" in shown.words) == (200, True)
        with Blocking(real_kafka.bootstrap) as client:

            def flows() -> str:
                client.send("console-overview", b"x" * 1000)
                return guest.part("/overview/flow").words

            until(flows, lambda words: "B/s" in words and "measuring" not in words)
        assert "No node tells its metrics" in guest.part("/overview/flow").words
        assert "This needs Ottla's nodes" in guest.get("/requests").words
        until(lambda: guest.part("/overview/health").words, lambda words: "checks have found nothing" in words)
