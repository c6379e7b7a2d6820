"""The Grafana dashboard of deploy/monitoring: a real Prometheus that scrapes a node answers every query of it.

Grafana itself cannot be had as a package, so what is left to it is only to draw the answers.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts.monitoring.dashboard import VARIABLES
from scripts.monitoring.promql import Selectors
from tests.server.metrics.scraping import ON
from tests.server.quotas.quota_records import set_quota
from tests.server.security.secured import log_in, plain_jaas
from tests.server.share_talk import ACCEPT, REJECT, SMALL, Member, Queue
from tests.server.talk import FETCH_VERSION, create, fetch_request, produce
from tests.support import tools
from tests.support.processes.prometheus import Prometheus
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S, until

from ottla import Blocking, ConsumerOptions, ProducerOptions
from ottla.observe.metrics.catalogue.loop import DELAY, STALLS
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

DASHBOARD = Path(__file__).resolve().parents[3] / "deploy" / "monitoring" / "dashboard.json"
LOGINS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
    "connection.failed.authentication.delay.ms": "1",
}
CHOSEN = {"$job": "ottla", "$instance": ".*", "$topic": ".*", "$group": ".*", "$__rate_interval": "10s"}
LEGEND = re.compile(r"\{\{(\w+)\}\}")


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def queries() -> list[tuple[str, str, str]]:
    """(panel, expression, legend)"""
    return [
        (panel["title"], target["expr"], target["legendFormat"])
        for panel in panels()
        for target in panel.get("targets", ())
    ]


def test_panels_have_their_places() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
    numbers = [panel["id"] for panel in panels()]
    assert len(numbers) == len(set(numbers)) > 40
    titles = [(panel["title"], panel["type"]) for panel in panels()]
    assert len(titles) == len(set(titles))
    for panel in panels():
        if panel["type"] != "row":
            assert panel["description"].strip()
            references = [target["refId"] for target in panel["targets"]]
            assert len(references) == len(set(references)) > 0


def test_a_selector_names_what_its_metric_has() -> None:
    scoped = Selectors('job="j"')
    assert scoped.of(DELAY, 'quantile="0.99"') == f'{DELAY.name}{{job="j",quantile="0.99"}}'
    with pytest.raises(ValueError, match="no label"):
        scoped.of(STALLS, 'topic="t"')
    with pytest.raises(ValueError, match="a summary"):
        scoped.of(DELAY)
    with pytest.raises(ValueError, match="a summary"):
        scoped.of(STALLS, part="_sum")


class Traffic:
    """Something of everything that the dashboard draws."""

    def __init__(self, broker: EmbeddedBroker, connection: RawConnection, client: Blocking, queue: Queue) -> None:
        self._broker, self._connection, self._client, self._queue = broker, connection, client, queue
        self._member = queue.join()
        self._registry = broker.registry.url
        self._acknowledged = 0

    def go_on(self) -> None:
        produce(self._connection, "t", [b"x" * 2000])
        produce(self._connection, "t", [b"x"], index=7)  # refused, as is the fetch
        self._connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
        self._connection.call(fetch_request({("t", 0): 1 << 40}), FETCH_VERSION)
        with self._client.transaction():
            self._client.send("t", b"x")
        self._share(self._member)
        self._log_in()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{self._registry}/subjects/missing/versions", timeout=WAIT_S)

    def _share(self, member: Member) -> None:
        first = self._acknowledged
        self._queue.put(b"a", b"b")
        until(lambda: member.poll())
        member.poll([(first, first, [ACCEPT]), (first + 1, first + 1, [REJECT])], max_records=0)
        self._acknowledged += 2

    def _log_in(self) -> None:
        assert self._broker.node is not None
        host, port = self._broker.node.addresses[1]
        with RawConnection(f"{host}:{port}") as connection:
            log_in(connection)
        with RawConnection(f"{host}:{port}") as connection:
            connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            connection.call(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guessed"), 2)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[Prometheus, Traffic]]:
    tools.require(tools.missing_prometheus())
    with (
        EmbeddedBroker(tmp_path / "data", ON | SMALL | LOGINS) as broker,
        RawConnection(broker.bootstrap) as connection,
        Blocking(broker.bootstrap, ProducerOptions(transactional_id="tx")) as client,
        client.consumer(ConsumerOptions("g", auto_offset_reset="earliest")) as consumer,
        Queue(broker, connection) as queue,
    ):
        assert broker.node is not None and broker.node.metrics_address is not None
        host, port = broker.node.metrics_address
        create(connection, "t", flush_messages=1)
        set_quota(broker, {"client-id": "raw"}, "producer_byte_rate", 1000.0)
        produce(connection, "t", [b"x"])
        consumer.subscribe(["t"])
        next(iter(consumer))
        consumer.commit()
        registry = broker.registry.url.removeprefix("http://")
        with Prometheus(tmp_path / "prometheus", [f"{host}:{port}", registry]) as prometheus:
            prometheus.until_scraped()
            yield prometheus, Traffic(broker, connection, client, queue)


def test_every_query_has_an_answer(asked: tuple[Prometheus, Traffic]) -> None:
    prometheus, traffic = asked
    unanswered = queries()

    def still() -> list[tuple[str, str, str]]:
        traffic.go_on()
        unanswered[:] = [query for query in unanswered if not answered(prometheus, *query)]
        return unanswered

    until(still, lambda left: not left)
    for variable in VARIABLES:
        selector = variable.selector.replace("$job", CHOSEN["$job"])
        assert prometheus.query(f"count by ({variable.name}) ({selector})"), f"nothing to choose for {variable.name}"


def chosen(expression: str) -> str:
    """A query as Grafana asks it when everything is chosen."""
    for name, value in CHOSEN.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


def answered(prometheus: Prometheus, panel: str, expression: str, legend: str) -> bool:
    found = prometheus.series(chosen(expression))
    for labels in found:
        assert set(LEGEND.findall(legend)) <= labels.keys(), f"{panel}: {legend} of {labels}"
    return bool(found)
