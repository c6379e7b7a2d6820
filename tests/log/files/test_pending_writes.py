"""Data that waits to be written: copies, in pieces of bounded size whose memory is used again."""

import random

import pytest

from ottla.log.files import pending_writes
from ottla.log.files.pending_writes import PendingPieces
from ottla.model.limits import WRITE_BUFFER_BYTES, WRITE_BUFFERS_KEPT_MAX

LARGE = WRITE_BUFFER_BYTES * 3 + 1000


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> list[bytearray]:
    kept: list[bytearray] = []
    monkeypatch.setattr(pending_writes, "_kept", kept)
    return kept


def written(waiting: PendingPieces) -> bytes:
    """What a worker writes, piece by piece."""
    found = b""
    while waiting:
        assert len(waiting[0].data) <= WRITE_BUFFER_BYTES
        found += waiting[0].data
        waiting.wrote(waiting[0])
    return found


def test_a_large_batch_waits_in_pieces_and_may_be_overwritten_where_it_came_from() -> None:
    source = bytearray(random.Random(1).randbytes(LARGE))
    expected = bytes(source)
    waiting = PendingPieces()
    waiting.add(100, memoryview(source))
    source[:] = bytes(LARGE)
    assert waiting.read(0, 1 << 30) == expected
    assert waiting.read(200, 300) == expected[100:200]
    assert (waiting[0].position, waiting[-1].end) == (100, 100 + LARGE)
    assert written(waiting) == expected


def test_what_is_written_leaves_its_memory_to_the_next(kept: list[bytearray]) -> None:
    waiting = PendingPieces()
    for _ in range(3):
        waiting.add(0, bytes(LARGE))
        written(waiting)
        assert len(kept) == 4
    waiting.add(0, bytes(WRITE_BUFFER_BYTES * (WRITE_BUFFERS_KEPT_MAX + 5)))
    assert not kept
    written(waiting)
    assert len(kept) == WRITE_BUFFERS_KEPT_MAX


def test_memory_is_not_used_again_while_a_worker_writes_from_it(kept: list[bytearray]) -> None:
    waiting = PendingPieces()
    waiting.add(0, b"a" * LARGE)
    begun = waiting[0]
    waiting.cut(0)
    waiting.add(0, b"b" * LARGE)
    assert begun.data == b"a" * WRITE_BUFFER_BYTES
    waiting.wrote(begun)
    assert len(kept) == 1
    assert written(waiting) == b"b" * LARGE


def test_pieces_are_what_was_appended_and_not_cut() -> None:
    rng = random.Random(2)
    waiting, model, start = PendingPieces(), b"", 0
    for _ in range(300):
        step = rng.random()
        end = start + len(model)
        if step < 0.4:
            data = rng.randbytes(rng.choice([10, 1_000, WRITE_BUFFER_BYTES // 2, WRITE_BUFFER_BYTES, LARGE]))
            waiting.add(end, data)
            model += data
        elif step < 0.75 and waiting:
            size = len(waiting[0].data)
            assert waiting[0].data == model[:size]
            waiting.wrote(waiting[0])
            start, model = start + size, model[size:]
        elif step < 0.85:
            cut = rng.randint(start, end)
            waiting.cut(cut)
            model = model[: cut - start]
        from_ = rng.randint(start, start + len(model))
        to = rng.randint(from_, start + len(model))
        assert waiting.read(from_, to) == model[from_ - start : to - start]


def test_data_for_which_there_is_no_memory_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of the file does not count what was not added: half of it would lie beyond the file's end."""
    buffers = [bytearray(WRITE_BUFFER_BYTES)]

    def buffer() -> bytearray:
        if not buffers:
            raise MemoryError
        return buffers.pop()

    monkeypatch.setattr(pending_writes, "_buffer", buffer)
    waiting = PendingPieces()
    waiting.add(0, b"small")
    with pytest.raises(MemoryError):
        waiting.add(5, bytes(LARGE))
    assert written(waiting) == b"small"
