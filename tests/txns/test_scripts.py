"""Scripts of the transaction coordinator: every way from one state to another, and every refusal."""

from pathlib import Path

import pytest
from tests.support.script import play
from tests.txns.stage import Cluster, durable, new_stage, verbs_of

from ottla.machine.keyed import Marker

SCRIPTS = sorted(Path(__file__).parent.glob("*.script"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    cluster = Cluster()
    stage = new_stage(cluster)
    play(path, stage, verbs_of(stage, cluster))
    assert durable(stage.replayed()) == durable(stage.machine)


def test_a_marker_in_the_journal_means_nothing() -> None:
    """WriteTxnMarkers may name any partition; the next life must still be able to read this one."""
    cluster = Cluster()
    stage = new_stage(cluster)
    verbs_of(stage, cluster)["init"]("t")
    stage.mark(Marker(7, 0, True))
    assert durable(stage.replayed()) == durable(stage.machine) != {}
