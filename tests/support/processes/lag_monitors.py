"""Two monitors of others, which read the lag of groups: Burrow and OpenTelemetry's collector with kafkametrics."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.ports import free_ports
from tests.support.tools import BURROW, COLLECTOR
from tests.support.waiting import WAIT_S

_BURROW = """
[general]
pidfile = "{directory}/burrow.pid"
[client-profile.tests]
client-id = "burrow"
kafka-version = "3.6.0"
[cluster.tests]
class-name = "kafka"
servers = ["{bootstrap}"]
client-profile = "tests"
topic-refresh = 1
offset-refresh = 1
[consumer.tests]
class-name = "kafka"
cluster = "tests"
servers = ["{bootstrap}"]
client-profile = "tests"
[httpserver.default]
address = "{address}"
[storage.default]
class-name = "inmemory"
min-distance = 0
[evaluator.default]
class-name = "caching"
expire-cache = 1
"""
_COLLECTOR = """
receivers:
  kafkametrics:
    brokers: ["{bootstrap}"]
    protocol_version: 3.6.0
    collection_interval: 1s
    scrapers: [brokers, topics, consumers]
exporters:
  file:
    path: {directory}/metrics.json
service:
  telemetry:
    metrics:
      level: none  # it would listen
  pipelines:
    metrics:
      receivers: [kafkametrics]
      exporters: [file]
"""


class Burrow:
    """Reads `__consumer_offsets` itself."""

    def __init__(self, address: str) -> None:
        self._address = address

    def lag(self, group: str) -> dict[str, Any] | None:
        """What it says of a group; None if it does not know the group yet."""
        url = f"http://{self._address}/v3/kafka/tests/consumer/{group}/lag"
        try:
            with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
                found: dict[str, Any] = json.load(answer)["status"]
                return found
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
        except OSError:  # it is starting
            pass
        return None


class Collector:
    """Asks brokers for the offsets of groups and of partitions."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def points(self, name: str, **attributes: str) -> list[int]:
        """The values of a metric that were collected last, with at least these attributes."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        for line in reversed(lines):
            if found := [
                int(point["asInt"])
                for metric in _metrics(_read(line))
                if metric["name"] == name
                for point in (metric.get("gauge") or metric["sum"])["dataPoints"]
                if attributes.items() <= _attributes(point).items()
            ]:
                return found
        return []


def _read(line: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:  # it is being written
        return {"resourceMetrics": []}
    return found


def _metrics(collected: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in collected["resourceMetrics"]:
        for scope in resource["scopeMetrics"]:
            yield from scope["metrics"]


def _attributes(point: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: str(next(iter(each["value"].values()))) for each in point.get("attributes", ())}


@contextmanager
def burrow(directory: Path, bootstrap: str) -> Iterator[Burrow]:
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    (directory / "burrow.toml").write_text(_BURROW.format(directory=directory, bootstrap=bootstrap, address=address))
    with _started(directory, [str(BURROW), "--config-dir", str(directory)]):
        yield Burrow(address)


@contextmanager
def collector(directory: Path, bootstrap: str) -> Iterator[Collector]:
    config = directory / "collector.yaml"
    config.write_text(_COLLECTOR.format(directory=directory, bootstrap=bootstrap))
    with _started(directory, [str(COLLECTOR), "--config", str(config)]):
        yield Collector(directory / "metrics.json")


@contextmanager
def _started(directory: Path, words: Sequence[str]) -> Iterator[None]:
    with (
        (directory / "log").open("ab") as log,
        subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
