"""What happens to records, told step by step; in often.script, to those that are delivered again and again."""

from pathlib import Path
from typing import Any

import pytest
from tests.shares.partition.stage import ShareStage
from tests.support.script import play


@pytest.mark.parametrize("name", ["partition", "often"])
def test_script(name: str) -> None:
    stage: Any = ShareStage()
    play(Path(__file__).with_name(f"{name}.script"), stage, stage.verbs)
