"""The alert rules of deploy/monitoring by promtool: on made-up samples each fires when it should, and only then.

In `test_alerts.py` most of them fire on a real cluster.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts.monitoring.alerts import Pace, alerts
from tests.cli.conftest import invoke
from tests.support import tools

from ottla.observe.metrics.catalogue import (
    connections,
    coordinators,
    lag,
    loop,
    partitions,
    process,
    quorum,
    requests,
    storage,
)
from ottla.observe.metrics.declaration import Metric

MONITORING = Path(__file__).resolve().parents[3] / "deploy" / "monitoring"
# Minutes: all is well, then not, then it is again.
WRONG_FROM, WELL_FROM, END = 30, 60, 120


def changes(well: float, wrong: float) -> str:
    return f"{well}+0x{WRONG_FROM - 1} {wrong}+0x{WELL_FROM - WRONG_FROM - 1} {well}+0x{END - WELL_FROM}"


def grows(at_most_s: float) -> str:
    """A counter, or an age, that grows by this much in a second while something is wrong."""
    step = at_most_s * 60
    top = step * (WELL_FROM - WRONG_FROM)
    return f"0+0x{WRONG_FROM - 1} 0+{step:g}x{WELL_FROM - WRONG_FROM - 1} {top:g}+0x{END - WELL_FROM}"


def ages() -> str:
    return f"0+0x{WRONG_FROM - 1} 60+60x{WELL_FROM - WRONG_FROM - 1} 0+0x{END - WELL_FROM}"


def series(metric: Metric, values: str, part: str = "", instance: str = "a", **labels: str) -> tuple[str, str]:
    told = ",".join(f'{name}="{value}"' for name, value in ({"instance": instance} | labels).items())
    return f"{metric.name}{part}{{job=@,{told}}}", values


GROUP = {"group": "g", "kind": "classic"}
# What makes each alert fire, in a job of its own.
FAULTS: dict[str, list[tuple[str, str]]] = {
    "OttlaNodeDown": [('up{job=@,instance="a"}', changes(1, 0))],
    "OttlaNoActiveController": [
        series(quorum.ACTIVE_CONTROLLER, changes(1, 0)),
        series(quorum.ACTIVE_CONTROLLER, changes(0, 0), instance="b"),
    ],
    "OttlaTwoActiveControllers": [
        series(quorum.ACTIVE_CONTROLLER, changes(1, 1)),
        series(quorum.ACTIVE_CONTROLLER, changes(0, 1), instance="b"),
    ],
    "OttlaBrokerFenced": [series(quorum.FENCED_BROKERS, changes(0, 1))],
    "OttlaMetadataBehind": [
        series(quorum.QUORUM_HIGH_WATERMARK, changes(90, 5000)),
        series(quorum.METADATA_LAG, changes(0, 0)),
        series(quorum.QUORUM_HIGH_WATERMARK, changes(90, 100), instance="b"),
        series(quorum.METADATA_LAG, changes(0, 0), instance="b"),
    ],
    "OttlaPartitionsOffline": [series(quorum.OFFLINE_PARTITIONS, changes(0, 2))],
    "OttlaUncleanElection": [series(quorum.UNCLEAN, grows(0.1))],
    "OttlaUnderMinIsr": [series(partitions.UNDER_MIN_ISR, changes(0, 2))],
    "OttlaUnderReplicated": [series(partitions.UNDER_REPLICATED, changes(0, 2))],
    "OttlaDirectoryOffline": [series(partitions.OFFLINE_DIRECTORIES, changes(0, 1))],
    "OttlaDiskFills": [
        series(storage.DISK_FREE, changes(50, 5), directory="d"),
        series(storage.DISK_SIZE, changes(100, 100), directory="d"),
        series(storage.DISK_FREE, changes(50, 50), directory="another"),
        series(storage.DISK_SIZE, changes(100, 100), directory="another"),
    ],
    "OttlaRequestErrors": [
        series(requests.ERRORS, grows(1), request="Produce", error="NOT_ENOUGH_REPLICAS"),
        series(requests.ERRORS, grows(9), request="Fetch", error="OFFSET_OUT_OF_RANGE"),
        series(requests.ERRORS, grows(99), request="Fetch", error="NONE"),
    ],
    "OttlaAuthenticationFailures": [
        series(connections.FAILED_LOGINS, grows(1), listener="L", mechanism="PLAIN"),
        series(connections.LOGINS, grows(9), listener="L", mechanism="PLAIN"),
    ],
    "OttlaEventLoopSaturated": [series(loop.IDLE, changes(0.9, 0.01))],
    "OttlaEventLoopSlow": [
        series(loop.DELAY, grows(1), "_sum"),
        series(loop.DELAY, f"0+300x{END}", "_count"),
    ],
    "OttlaGroupLagGrows": [
        series(lag.GROUP_LAG_TIME, ages(), **GROUP),
        series(lag.GROUP_LAG_TIME, changes(900, 900), group="always as late", kind="classic"),
    ],
    "OttlaTransactionOpen": [series(coordinators.OLDEST_TRANSACTION, ages())],
    "OttlaFileDescriptors": [
        series(process.OPEN_FILES, changes(100, 900)),
        series(process.MAX_FILES, changes(1000, 1000)),
    ],
}
ALL = [alert.name for alert in alerts(Pace())]


def test_each_alert_has_its_fault() -> None:
    assert list(FAULTS) == ALL


def test_each_alert_fires_for_its_fault_alone(tmp_path: Path) -> None:
    tools.require(tools.missing_prometheus())

    def firing(minute: int, expected: list[str]) -> dict[str, Any]:
        samples = [{"labels": f'{{alertname="{name}",job="ottla-{name}"}}', "value": 1} for name in expected]
        expression = 'count by (alertname, job) (ALERTS{alertstate="firing"})'
        return {"expr": expression, "eval_time": f"{minute}m", "exp_samples": samples}

    test = {
        "rule_files": [str(MONITORING / "alerts.yml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name.replace("@", f'"{job}"'), "values": values}
                    for alert, faults in FAULTS.items()
                    for name, values in faults
                    for job in (f"ottla-{alert}", f"kafka-{alert}")  # those of a Kafka are not ours
                ],
                "promql_expr_test": [
                    firing(WRONG_FROM - 1, []),
                    firing(WRONG_FROM, []),  # it may be over in a moment
                    firing(WELL_FROM - 2, ALL),
                    firing(END - 1, []),
                ],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump(test))
    for command in (["check", "rules", str(MONITORING / "alerts.yml")], ["test", "rules", str(path)]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", alerts(Pace()), ids=lambda alert: alert.name)
def test_the_commands_of_a_remedy_exist(alert: Any) -> None:
    for command in re.findall(r"`ottla ([a-z -]+)", alert.remedy):
        words = [word for word in command.split() if not word.startswith("-")]
        assert invoke(*words, "--help").code == 0, command
        for option in re.findall(r"--[a-z]+", command):
            assert option in invoke(*words, "--help").out


@pytest.mark.parametrize(("factor", "texts"), [(1, ["0s", "30s", "5m"]), (60, ["0s", "0s", "5s"])])
def test_a_pace_shortens_times(factor: int, texts: list[str]) -> None:
    assert [Pace(factor).time(seconds) for seconds in (0, 30, 300)] == texts
