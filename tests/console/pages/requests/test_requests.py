"""The requests of a node by API: rates, times, and errors by code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.console.consoles import Visitor, running_console
from tests.support.ports import free_ports
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.console.options import ConsoleOptions
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.testing.broker import EmbeddedBroker


@pytest.fixture
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    settings = {"ottla.metrics.listener": f"127.0.0.1:{free_ports(1)[0]}"}
    with EmbeddedBroker(tmp_path_factory.mktemp("measured"), settings) as broker:
        yield broker


def test_rates_and_errors(measured: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSOLE_SAMPLE_S", 1)
    with running_console(ConsoleOptions(measured.bootstrap, port=0)) as console, Blocking(measured.bootstrap) as client:
        guest = Visitor(console.url)
        assert guest.get("/requests").status == 200

        def busy() -> str:
            client.send("orders", b"x")
            with pytest.raises(ApiError):
                client.admin.topics.delete("no-such-topic")
            return guest.part("/requests/now").words

        shown = until(busy, lambda words: "UNKNOWN_TOPIC_OR_PARTITION" in words and "Produce" in words)
        assert "DeleteTopics" in shown and " ms" in shown
        drawn = until(lambda: guest.part("/requests/now").text, lambda text: "<polyline" in text)
        assert "99th percentile" in drawn


def test_without_metrics_it_says_so(visitor: Visitor) -> None:
    shown = visitor.get("/requests")
    assert (shown.status, "No node tells its metrics" in shown.words) == (200, True)
    assert "ottla.metrics.listener" in shown.words
