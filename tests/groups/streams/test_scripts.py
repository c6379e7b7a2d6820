"""Streams groups, told in scripts."""

from pathlib import Path

import pytest
from tests.groups.streams.stage import Streamers
from tests.support.script import play

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.script"))
SETTINGS: dict[str, dict[str, str]] = {
    "delay": {"group.streams.initial.rebalance.delay.ms": "3000"},
    "interval": {"group.streams.assignment.interval.ms": "5000"},
    "full": {"group.streams.max.size": "2"},
    "standby": {"group.streams.num.standby.replicas": "1"},
}
BY_HAND = ("missing",)  # internal topics are made by the script


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    stage = Streamers(own=path.stem not in BY_HAND, **SETTINGS.get(path.stem, {}))
    play(path, stage, stage.verbs())
