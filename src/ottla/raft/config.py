"""The times and sizes of consensus: Kafka's settings, and the values derived from them."""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import limits

NEVER_MS = 1 << 62  # a point in time that is never reached


class RaftConfig(NamedTuple):
    """The settings `controller.quorum.*`."""

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
        """How long a leader may hold back an empty answer: short enough that the fetch does not look lost."""
        return min(limits.RAFT_FETCH_WAIT_MS_MAX, self.fetch_timeout_ms // 2, self.request_timeout_ms // 2)

    @property
    def check_quorum_ms(self) -> int:
        """A leader resigns if a majority has not fetched from it for this long."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        return max(self.fetch_timeout_ms // 2, 1)

    @property
    def quarantine_ms(self) -> int:
        """How long a voter that lost its disk must not count.

        After this time no node relies any more on what the voter said before: a candidate that it voted for was elected
        or gave up, a leader that lost that election has noticed, and messages that were in flight have arrived.
        """
        return 2 * self.election_timeout_ms + self.check_quorum_ms + self.request_timeout_ms

    @property
    def roll_call_ms(self) -> int:
        """How long a voter's word that its log is empty is valid; shorter than its quarantine, whatever the clocks."""
        return self.quarantine_ms // 2

    @property
    def update_voter_interval_ms(self) -> int:
        return self.fetch_timeout_ms * 3
