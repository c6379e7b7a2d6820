"""The epochs of sessions (KIP-227 for fetches, KIP-932 for share groups): 0 opens one, 1, 2, … continue it, -1 ends it.

Clients and followers count them in this way, and so does the node that keeps the session.
"""

from __future__ import annotations

from ottla.model.limits import INT32_MAX

FINAL_EPOCH = -1
INITIAL_EPOCH = 0


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request of a session; after the largest one comes 1."""
    return 1 if epoch == INT32_MAX else epoch + 1
