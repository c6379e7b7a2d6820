"""A real Prometheus that scrapes some addresses twice a second, and looks at its rules as often."""

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
  evaluation_interval: 500ms
rule_files: [{rules}]
scrape_configs:
  - job_name: ottla
    static_configs:
      - targets: [{targets}]
"""


class Prometheus:
    def __init__(self, directory: Path, targets: Sequence[str], *settings: str, rules: Sequence[Path] = ()) -> None:
        """`settings` are further lines of the job, `rules` files of alerts."""
        self._directory = directory
        self._targets = targets
        self._settings = settings
        self._rules = rules
        (port,) = free_ports(1)
        self._address = f"127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Prometheus:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "prometheus.yml"
        filled = _CONFIG.format(targets=_listed(self._targets), rules=_listed(self._rules))
        config.write_text(filled + "".join(f"    {each}\n" for each in self._settings))
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
        return {
            ",".join(f"{name}={value}" for name, value in sorted(each["metric"].items()) if name in _told(each)): float(
                each["value"][1]
            )
            for each in self._ask(expression)
        }

    def series(self, expression: str) -> list[dict[str, str]]:
        """All labels of what an instant query finds."""
        return [each["metric"] for each in self._ask(expression)]

    def _ask(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get(f"query?{urllib.parse.urlencode({'query': expression})}")["result"]
        return found

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that fire, with their labels and annotations."""
        found: list[dict[str, Any]] = self._get("alerts")["alerts"]
        return [each for each in found if each["state"] == "firing"]

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


def _listed(items: Sequence[object]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _told(found: dict[str, Any]) -> set[str]:
    return set(found["metric"]) - {"__name__", "instance", "job"}
