"""The times and sizes of consensus: Kafka's settings, and what Kafka derives from them."""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import limits

NEVER_MS = 1 << 62  # as a point in time


class RaftConfig(NamedTuple):
    """From `controller.quorum.*`."""

    election_timeout_ms: int = 1_000
    election_backoff_max_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1_048_576
    fetch_snapshot_max_bytes: int = 1_048_576
    auto_join: bool = False

    @property
    def fetch_wait_ms(self) -> int:
        """How long a leader may hold back an empty answer: short enough that a fetch never looks lost."""
        return min(limits.RAFT_FETCH_WAIT_MS_MAX, self.fetch_timeout_ms // 2, self.request_timeout_ms // 2)

    @property
    def check_quorum_ms(self) -> int:
        """A leader that a majority did not fetch from for so long resigns."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        return max(self.fetch_timeout_ms // 2, 1)

    @property
    def quarantine_ms(self) -> int:
        """After that nobody relies on what a voter said whose disk is lost: a candidate that it voted for was elected
        or gave up, whoever lost that election has noticed, and what was on its way is there."""
        return 2 * self.election_timeout_ms + self.check_quorum_ms + self.request_timeout_ms

    @property
    def roll_call_ms(self) -> int:
        """How long it counts that a voter said that its log is empty; less than its quarantine, by whatever clock."""
        return self.quarantine_ms // 2

    @property
    def update_voter_interval_ms(self) -> int:
        return self.fetch_timeout_ms * 3
