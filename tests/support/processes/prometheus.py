"""A real Prometheus that scrapes some addresses twice a second."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.ports import free_ports
from tests.support.waiting import until

_CONFIG = """
global:
  scrape_interval: 500ms
  scrape_timeout: 500ms
scrape_configs:
  - job_name: ottla
    static_configs:
      - targets: [{targets}]
"""


class Prometheus:
    def __init__(self, directory: Path, targets: Sequence[str], *settings: str) -> None:
        """`settings` are further lines of the job."""
        self._directory = directory
        self._targets = targets
        self._settings = settings
        (port,) = free_ports(1)
        self._address = f"127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Prometheus:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "prometheus.yml"
        targets = ", ".join(f'"{target}"' for target in self._targets)
        config.write_text(_CONFIG.format(targets=targets) + "".join(f"    {each}\n" for each in self._settings))
        with (self._directory / "prometheus.err").open("ab") as err:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={config}",
                    f"--storage.tsdb.path={self._directory / 'data'}",
                    f"--web.listen-address={self._address}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None, "it was started"
        self._process.terminate()
        self._process.wait()

    def query(self, expression: str) -> dict[str, float]:
        """The values of an instant query, by their labels in the order of their names, without `instance` and `job`."""
        found = self._get(f"query?{urllib.parse.urlencode({'query': expression})}")
        return {
            ",".join(f"{name}={value}" for name, value in sorted(each["metric"].items()) if name in _told(each)): float(
                each["value"][1]
            )
            for each in found["result"]
        }

    def targets(self) -> list[dict[str, Any]]:
        """Its targets, with `health` and `lastError`."""
        found: list[dict[str, Any]] = self._get("targets")["activeTargets"]
        return found

    def until_scraped(self) -> None:
        """Waits until all targets were scraped well."""
        until(self.health, lambda found: found == ["up"] * len(self._targets))

    def health(self) -> list[str]:
        """The health of each target, followed by its last error; none while Prometheus starts."""
        try:
            return [f"{each['health']}{each['lastError']}" for each in self.targets()]
        except OSError:
            return []

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self._address}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)["data"]


def _told(found: dict[str, Any]) -> set[str]:
    return set(found["metric"]) - {"__name__", "instance", "job"}
