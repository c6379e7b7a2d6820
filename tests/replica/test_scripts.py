"""Scripts: what leader and followers of a partition do in the situations that `replica/partition.py` lists."""

from pathlib import Path

import pytest
from tests.replica.stage import ReplicaStage
from tests.support.script import play

SCRIPTS = sorted(Path(__file__).parent.glob("scripts/*.script"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    stage = ReplicaStage()
    play(path, stage, stage.verbs())
