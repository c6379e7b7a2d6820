"""What is read from a node's metrics: names that clients chose forge no samples, and a scrape is read once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from tests.server.metrics.scraping import Scrape
from tests.support.ports import free_ports

from ottla.client.admin import Admin
from ottla.observe.metrics.catalogue.process import BUILD
from ottla.observe.metrics.declaration import Area
from ottla.observe.metrics.exposition import Exposition
from ottla.operations.metrics.samples import MetricSamples
from ottla.operations.sampling.sample import TopSampler
from ottla.testing.broker import EmbeddedBroker

LAG = Area("Test", "…").gauge("ottla_test_lag", "…", "group")
FORGED = "ottla_test_forged"
ENDS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("end", ENDS, ids=ascii)
def test_a_name_of_a_group_forges_no_metric(end: str) -> None:
    group = f'a{end}{FORGED}{{group="b"}} 7{end}{FORGED} 8{end}'
    exposition = Exposition(10)
    exposition.add(LAG, 3, group)
    text = b"".join(exposition.chunks()).decode()
    assert list(MetricSamples(text).of(LAG.name)) == [({"group": group}, 3.0)]
    assert MetricSamples(text).value(FORGED) is None
    assert Scrape(text).samples == {(LAG.name, (("group", group),)): 3.0}


def test_lines_that_are_no_samples_are_left_out() -> None:
    read = MetricSamples("# HELP a b\n\na 1\na x\na\n")
    assert list(read.of("a")) == [({}, 1.0)]


def test_what_a_node_tells_is_read_once_and_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    read = MetricSamples.__init__

    def counted(self: MetricSamples, text: str = "") -> None:
        threads.append(threading.current_thread())
        read(self, text)

    async def sampled(bootstrap: str) -> dict[int, MetricSamples]:
        async with Admin(bootstrap) as admin:
            brokers = (await admin.nodes.describe()).brokers
            return await TopSampler(admin, None).metrics(brokers, [])

    monkeypatch.setattr(MetricSamples, "__init__", counted)
    settings = {"ottla.metrics.listener": f"127.0.0.1:{free_ports(1)[0]}"}
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        (told,) = asyncio.run(sampled(broker.bootstrap)).values()
    assert told.value(BUILD.name) == 1
    assert len(threads) == 1 and threads[0] is not threading.main_thread()
