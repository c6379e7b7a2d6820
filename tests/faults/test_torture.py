"""A short sample of `make torture`: a node with default settings is killed while its topics change."""

from pathlib import Path

from tests.torture.run import Torture


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    facts = Torture(tmp_path / "node", 20261116).run(2.0)
    assert facts["kills"] and facts["acknowledged"]
