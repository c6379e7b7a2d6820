"""Records that look like their neighbours are read by another path than the rest: both must agree, whatever follows."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.errors import ApiError
from ottla.model.limits import RECORDS_DECODED_AT_ONCE_MAX
from ottla.records.batch import HEADER_BYTES, read_header
from ottla.records.build import build_batch
from ottla.records.record import Record, frames, payload, records

BASE_MS = 1_700_000_000_000
sizes = st.one_of(st.none(), st.integers(0, 3), st.sampled_from([62, 63, 64, 65, 200]))


@st.composite
def runs(draw: st.DrawFn) -> list[Record]:
    """Runs of records of one size each; now and then one has headers, or comes much later."""
    found: list[Record] = []
    time = BASE_MS
    for _ in range(draw(st.integers(1, 6))):
        key, value = draw(sizes), draw(sizes)
        step = draw(st.sampled_from([0, 0, 1, 63, 70, 9000]))
        for _ in range(draw(st.integers(1, 40))):
            time += step
            headers = (("h", b"x"),) if draw(st.integers(0, 30)) == 0 else ()
            fill = bytes([len(found) % 251])
            found.append(
                Record(
                    -1,
                    time,
                    None if key is None else fill * key,
                    None if value is None else fill * value,
                    headers,
                )
            )
    return found


@given(runs())
@settings(deadline=None)
def test_what_was_written_is_read(written: list[Record]) -> None:
    batch = bytes(build_batch(written))
    found = list(records(batch))
    assert found == [record._replace(offset=index) for index, record in enumerate(written)]


@given(runs(), st.integers(0, 2**32), st.data())
@settings(deadline=None)
def test_damage_is_seen_as_by_the_other_reader(written: list[Record], seed: int, data: st.DataObject) -> None:
    """One byte is changed: `frames`, which reads record after record, finds the same records or a fault as well."""
    batch = bytearray(build_batch(written))
    at = data.draw(st.integers(HEADER_BYTES, len(batch) - 1))
    batch[at] ^= random.Random(seed).randrange(1, 256)
    header = read_header(batch)

    def by_frames() -> list[tuple[int, int]] | None:
        try:
            return [(each.offset, each.timestamp) for each in frames(payload(batch, 0, header), header)]
        except ApiError:
            return None

    def by_records() -> list[tuple[int, int]] | None:
        try:
            return [(each.offset, each.timestamp) for each in records(batch)]
        except ApiError:
            return None

    assert by_records() == by_frames()


def test_offsets_of_every_width_and_gaps() -> None:
    many = [Record(-1, BASE_MS + index // 100, b"key", b"v") for index in range(8 * RECORDS_DECODED_AT_ONCE_MAX + 99)]
    assert [record.offset for record in records(bytes(build_batch(many)))] == list(range(len(many)))
    gaps = [Record(offset, BASE_MS, b"key", b"value") for offset in (5, 6, 7, 9, 10, 11, 12, 400, 401, 402)]
    assert list(records(bytes(build_batch(gaps)))) == gaps
