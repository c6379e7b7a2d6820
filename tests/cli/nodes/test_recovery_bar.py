"""The progress of recovery: a log that has nothing to read is not shown."""

from __future__ import annotations

from ottla.cli.nodes.commands import RecoveryBar
from ottla.model.ids import TopicPartition


def test_an_empty_log_is_not_shown() -> None:
    with RecoveryBar() as bar:
        for index in range(20):
            bar.advance(TopicPartition("t", index), 0, 0)
        assert bar._bar is None and bar._tasks == {}
        bar.advance(TopicPartition("t", 0), 0, 100)
        bar.advance(TopicPartition("t", 0), 100, 100)
        assert list(bar._tasks) == [TopicPartition("t", 0)]
