"""Data loss: records that were to be read and do not exist any more, with the reason.

Rules:
- With `failOnDataLoss` (the default) a loss fails the query; without, it is logged as a warning and the query goes on
  with the records that exist.
- Gaps in offsets are no loss: control records, aborted transactions and compaction leave offsets without records.
"""

import logging
from enum import Enum

from ottla.model.ids import TopicPartition

_log = logging.getLogger(__name__)


class Reason(Enum):
    """Why records are gone."""

    RETENTION = "retention deleted them, or DeleteRecords did"
    TRUNCATED = "the log was truncated: an unclean election, or the broker lost data"
    AHEAD = "the offset is beyond the end of the log: a wrong option or checkpoint, or the topic was created anew"
    RECREATED = "the topic was deleted and created anew"
    TOPIC_DELETED = "the topic was deleted"
    PARTITION_GONE = "the partition does not exist any more"
    LATE_PARTITION = "the partition is new, but its first records are gone already"


class DataLoss(Exception):
    """Records that were to be read do not exist any more."""

    def __init__(self, partition: TopicPartition | None, reason: Reason, what: str) -> None:
        self.partition = partition
        self.reason = reason
        self.what = what
        super().__init__(f"{self.told}. Set the option failOnDataLoss to false to go on with what is there.")

    @property
    def told(self) -> str:
        return f"data loss ({self.reason.name.lower()}): {self.what}; {self.reason.value}"

    def __reduce__(self) -> tuple[object, ...]:
        return DataLoss, (self.partition, self.reason, self.what)


def report(loss: DataLoss, *, fail: bool) -> None:
    """Raise the loss, or log it."""
    if fail:
        raise loss
    _log.warning("%s", loss.told)
