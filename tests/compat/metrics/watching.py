"""A cluster that a Prometheus watches by the alert rules, at a pace at which a minute of theirs passes in a second."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from scripts.monitoring.alerts import Pace
from scripts.monitoring.rules import rules
from tests.support.ports import free_ports
from tests.support.processes.clusters import OttlaCluster, Place, running
from tests.support.processes.prometheus import Prometheus
from tests.support.waiting import WAIT_S, until

PACE = Pace(60)


class MeteredCluster(OttlaCluster):
    """Three nodes that tell metrics."""

    def __init__(
        self, directory: Path, *, properties: Mapping[str, str] | None = None, place: Place | None = None
    ) -> None:
        self.metrics = [f"127.0.0.1:{port}" for port in free_ports(3)]
        super().__init__(directory, properties=properties, place=place)

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        return super().settings_of(id, directory) | {"ottla.metrics.listener": self.metrics[id - 1]}


class Watched:
    """The cluster, a Prometheus that watches it, and which alerts have fired."""

    def __init__(self, cluster: MeteredCluster, prometheus: Prometheus) -> None:
        self.cluster = cluster
        self.fired: set[str] = set()
        self.prometheus = prometheus

    def firing(self) -> set[str]:
        found = self.prometheus.alerts()
        for alert in found:
            texts = " ".join(alert["annotations"].values())
            assert not re.search(r"\{\{|<error|<no value>", texts), texts
        names = {alert["labels"]["alertname"] for alert in found}
        self.fired |= names
        return names

    def until_fire(self, names: set[str], act: Callable[[], object] = lambda: None) -> None:
        """Do something again and again until these alerts fire, all at once."""

        def look() -> set[str]:
            act()
            time.sleep(0.1)
            return names - self.firing()

        until(look, lambda missing: not missing)

    def until_clear(self, names: set[str]) -> None:
        until(lambda: names & self.firing(), lambda left: not left)

    def create(self, topic: str, configs: Mapping[str, str] | None = None, **placed: object) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})
        (made,) = admin.create_topics([NewTopic(topic, config=dict(configs or {}), **placed)]).values()
        made.result(WAIT_S)


@contextmanager
def watched(directory: Path, cluster: MeteredCluster) -> Iterator[Watched]:
    """Start the cluster, and the Prometheus that watches it."""
    path = directory / "alerts.yml"
    path.write_text(rules(PACE))
    with running(cluster), Prometheus(directory / "prometheus", cluster.metrics, rules=[path]) as prometheus:
        prometheus.until_scraped()
        yield Watched(cluster, prometheus)
