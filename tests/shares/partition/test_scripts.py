"""What happens to records, told step by step in partition.script."""

from pathlib import Path
from typing import Any

from tests.shares.partition.stage import ShareStage
from tests.support.script import play


def test_script() -> None:
    stage: Any = ShareStage()
    play(Path(__file__).with_name("partition.script"), stage, stage.verbs)
