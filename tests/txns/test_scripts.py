"""Scripts of the transaction coordinator: every way from one state to another, and every refusal."""

from pathlib import Path

import pytest
from tests.support.script import play
from tests.txns.stage import Cluster, durable, new_stage, verbs_of

from ottla.machine.keyed import Marker
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.txns.commands.add_partitions import AddPartitions

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


def test_a_transaction_has_so_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PARTITIONS_PER_TRANSACTION_MAX", 3)
    cluster = Cluster()
    stage = new_stage(cluster)
    verbs_of(stage, cluster)["init"]("t")
    known = stage.machine.view.state.transactions["t"]

    def add(*indexes: int) -> bool:
        wanted = tuple(TopicPartition("x", index) for index in indexes)
        stage.told()
        stage.submit("t", AddPartitions("t", known.producer_id, known.epoch, wanted))
        return "t: UNKNOWN_SERVER_ERROR" not in stage.told()

    assert [add(0, 1), add(1, 2), add(0, 1, 2), add(3), add(2)] == [True, True, True, False, True]
    assert len(stage.machine.view.state.transactions["t"].partitions) == 3
