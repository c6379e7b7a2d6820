"""Two ways of looking at records give one answer: by columns where they are small, frame by frame elsewhere."""

from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from ottla.log.config import LogConfig
from ottla.log.look import Look
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.records.batch import LOG_APPEND_TIME_FLAG, NO_TIMESTAMP, read_header
from ottla.records.build import assemble, put_record

NOW_MS = 1_000_000
times = st.one_of(st.just(NO_TIMESTAMP), st.integers(0, 2 * NOW_MS), st.just(NOW_MS))
keys = st.one_of(st.none(), st.binary(max_size=3))
records = st.lists(st.tuples(times, keys, st.integers(0, 1)), min_size=1, max_size=5)
bounds = st.sampled_from([limits.INT64_MAX, NOW_MS, 10])
configs = st.tuples(st.booleans(), st.booleans(), bounds, bounds).map(
    lambda told: LogConfig(
        compact=told[0], log_append_time=told[1], timestamp_before_max_ms=told[2], timestamp_after_max_ms=told[3]
    )
)


def outcome(batch: bytes, config: LogConfig, by_column_bytes: int) -> Any:
    with patch.object(limits, "LOOKED_AT_BY_COLUMN_BYTES", by_column_bytes):
        look = Look(memoryview(batch), read_header(memoryview(batch)), config, NOW_MS, "t-0", 1 << 20).whole()
    refusal = look.refusal
    if isinstance(refusal, ApiError):
        return refusal.code, refusal.message, refusal.record_errors
    assert refusal is None
    return look.max_timestamp


@given(records, configs, st.booleans(), st.data())
def test_both_ways_give_the_same(
    found: list[tuple[int, bytes | None, int]], config: LogConfig, append_time: bool, data: st.DataObject
) -> None:
    out = bytearray()
    for index, (time_ms, key, skipped) in enumerate(found):
        put_record(out, index + skipped * (index % 2), time_ms, key, b"value", ())
    if data.draw(st.booleans()):
        out[data.draw(st.integers(0, len(out) - 1))] = data.draw(st.integers(0, 255))
    batch = assemble(
        out,
        base_offset=0,
        leader_epoch=0,
        attributes=LOG_APPEND_TIME_FLAG if append_time else 0,
        last_offset_delta=len(found) - 1,
        base_timestamp=0,
        max_timestamp=max(time_ms for time_ms, _, _ in found),
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=len(found),
    )
    assert outcome(bytes(batch), config, 0) == outcome(bytes(batch), config, 1_000_000)
