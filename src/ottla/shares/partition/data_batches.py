"""Finds, by the headers of a log's batches, which batches hold records to deliver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ottla.records.batch import BatchHeader
from ottla.shares.partition.terms import FetchedBatch


def spans(headers: Iterable[BatchHeader], aborted: Sequence[tuple[int, int]] = ()) -> Iterator[FetchedBatch]:
    """Yield a FetchedBatch for each batch; `aborted` are the producers and first offsets of aborted transactions."""
    coming = sorted(aborted, key=lambda entry: entry[1])
    at = 0
    open_: set[int] = set()
    for header in headers:
        while at < len(coming) and coming[at][1] <= header.last_offset:
            open_.add(coming[at][0])
            at += 1
        data = not header.is_control and header.count > 0
        if header.is_control:
            # The marker ends the aborted transaction.
            open_.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in open_:
            data = False
        yield FetchedBatch(header.base_offset, header.last_offset, data)
