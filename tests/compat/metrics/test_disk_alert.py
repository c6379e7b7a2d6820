"""A disk that fills makes its alert fire, and clear when there is room again. A minute of the rules takes a second."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.monitoring.rules import rules
from tests.compat.metrics.watching import PACE
from tests.server.metrics.scraping import ON
from tests.support import tools
from tests.support.mounts import small_disk
from tests.support.processes.prometheus import Prometheus
from tests.support.waiting import until

from ottla.testing.broker import EmbeddedBroker


@pytest.mark.slow
def test_a_disk_that_fills(tmp_path: Path) -> None:
    tools.require(tools.missing_prometheus())
    path = tmp_path / "alerts.yml"
    path.write_text(rules(PACE))
    with (
        small_disk(tmp_path / "small", 64 << 20) as small,
        EmbeddedBroker(tmp_path, ON | {"log.dirs": f"{tmp_path / 'roomy'},{small / 'data'}"}) as broker,
    ):
        assert broker.node is not None and broker.node.metrics_address is not None
        host, port = broker.node.metrics_address
        with Prometheus(tmp_path / "prometheus", [f"{host}:{port}"], rules=[path]) as prometheus:

            def filling() -> list[str]:
                return [
                    alert["annotations"]["description"]
                    for alert in prometheus.alerts()
                    if alert["labels"]["alertname"] == "OttlaDiskFills"
                ]

            prometheus.until_scraped()
            ballast = small / "ballast"
            ballast.write_bytes(bytes(58 << 20))
            (told,) = until(filling)
            assert str(small / "data") in told
            ballast.unlink()
            until(filling, lambda alerts: not alerts)
