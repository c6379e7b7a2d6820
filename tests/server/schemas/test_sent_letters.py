"""Which dead letters are remembered for a retry."""

from __future__ import annotations

import pytest

from ottla.log.inspection import Placed
from ottla.model import limits
from ottla.replica.partition import Partition
from ottla.server.dead_letters.remote_letters import RemoteBatch
from ottla.server.schemas.sent_letters import SentLetters


class _Source(Partition):
    """A partition of which only its identity and its truncations count."""

    def __init__(self) -> None:
        self.cuts = 0


def test_letters_are_remembered_until_they_or_their_batch_are_truncated() -> None:
    source, letters = _Source(), RemoteBatch(bytearray())
    placed = (Placed(letters, 0, 1),)
    sent = SentLetters()
    sent.note(source, 5, placed)
    assert sent.of(source, 5) == placed
    assert sent.of(source, 6) is None and sent.of(_Source(), 5) is None
    source.cuts += 1
    assert sent.of(source, 5) is None
    source.cuts -= 1
    letters.cuts += 1
    assert sent.of(source, 5) is None


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SENT_LETTERS_MAX", 2)
    source, sent = _Source(), SentLetters()
    for offset in (1, 2, 1, 3):
        sent.note(source, offset, ())
    assert [sent.of(source, offset) for offset in (1, 2, 3)] == [(), None, ()]
