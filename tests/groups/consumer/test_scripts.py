"""Every transition of a consumer group, told as scripts."""

from pathlib import Path

import pytest
from tests.groups.consumer.stage import Consumers
from tests.support.script import play

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.script"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    stage = Consumers()
    play(path, stage, stage.verbs())
