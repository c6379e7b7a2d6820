"""Scripts: what the quorum does in the situations that `raft/roles.py` lists, told line by line."""

from pathlib import Path

import pytest
from tests.raft.stage import RaftStage
from tests.support.script import play

SCRIPTS = sorted(Path(__file__).parent.glob("scripts/*.script"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    stage = RaftStage()
    play(path, stage, stage.verbs())
