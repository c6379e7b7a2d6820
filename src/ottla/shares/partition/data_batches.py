"""What the headers of a log say about handing out: which batches hold data that counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ottla.records.batch import BatchHeader
from ottla.shares.partition.terms import FetchedBatch


def spans(headers: Iterable[BatchHeader], aborted: Sequence[tuple[int, int]] = ()) -> Iterator[FetchedBatch]:
    """A span for each batch; `aborted` are the producers and first offsets of transactions that do not count."""
    coming = sorted(aborted, key=lambda entry: entry[1])
    at = 0
    open_: set[int] = set()
    for header in headers:
        while at < len(coming) and coming[at][1] <= header.last_offset:
            open_.add(coming[at][0])
            at += 1
        data = not header.is_control and header.count > 0
        if header.is_control:
            # Nothing of an aborted transaction comes after its marker.
            open_.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in open_:
            data = False
        yield FetchedBatch(header.base_offset, header.last_offset, data)
