"""Building blocks of the log's tests: batches, reading everything back, looking at index files."""

from collections.abc import Iterator

from ottla.log.config import LogConfig
from ottla.log.files.names import LOG, OFFSET_INDEX, TIME_INDEX, file_name
from ottla.log.log import Appended, Log
from ottla.log.lookup import TimeOffset
from ottla.records.batch import BatchHeader, check, headers
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Record, records
from ottla.sim.world.disk import SimDisk

DIRECTORY = "topic-0"
NOW_MS = 1_000_000


def batch(
    count: int = 1,
    *,
    timestamp: int = NOW_MS,
    step_ms: int = 0,
    size_bytes: int = 10,
    key: bytes | None = b"key",
    producer: int = -1,
    epoch: int = 0,
    sequence: int = -1,
    transactional: bool = False,
    codec: Codec = Codec.NONE,
) -> bytearray:
    """`count` records; the i-th is `step_ms` later than the one before."""
    found = [Record(-1, timestamp + i * step_ms, key, b"v" * size_bytes) for i in range(count)]
    return build_batch(
        found,
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence,
        transactional=transactional,
        codec=codec,
    )


def open_log(disk: SimDisk | None = None, config: LogConfig | None = None, **options: object) -> Log:
    now_ms = options.pop("now_ms", NOW_MS)
    return Log.open(disk or SimDisk(), DIRECTORY, config or LogConfig(), now_ms=now_ms, **options)  # type: ignore[arg-type]


def append(log: Log, records: bytearray | None = None, *, now_ms: int = NOW_MS, epoch: int = 0) -> Appended:
    return log.append(records if records is not None else batch(), leader_epoch=epoch, now_ms=now_ms)


def read_batches(
    log: Log, offset: int | None = None, *, max_bytes: int = 1 << 20
) -> Iterator[tuple[BatchHeader, bytes]]:
    """Every batch from `offset` on, as a consumer that fetches again and again sees them; CRCs are checked."""
    at = log.log_start_offset if offset is None else offset
    while at < log.next_offset:
        fetched = log.read(at, max_bytes, max_offset=log.next_offset)
        if fetched.slice is None:
            return
        data = fetched.slice.read()
        assert len(data) == fetched.size_bytes == len(fetched.slice)
        before = at
        for pos, header in headers(data):
            check(data, pos, header)
            if header.last_offset >= at:
                yield header, data[pos : pos + header.size_bytes]
                at = header.next_offset
        assert at > before, "a fetch must bring the reader forward"


def read_records(log: Log, offset: int | None = None, *, max_bytes: int = 1 << 20) -> list[Record]:
    start = log.log_start_offset if offset is None else offset
    found = [record for _, data in read_batches(log, start, max_bytes=max_bytes) for record in records(data)]
    return [record for record in found if record.offset >= start]


def aborted(log: Log, start: int, end: int) -> list[tuple[int, int]]:
    """(producer id, first offset) of the aborted transactions with records in [start, end), by the indexes."""
    found = [txn for segment in log.segments for txn in segment.aborted.entries()]
    return [(txn.producer_id, txn.first_offset) for txn in found if txn.last_offset >= start and txn.first_offset < end]


def check_indexes(log: Log) -> None:
    """Every index entry says the truth, as Kafka's DumpLogSegments checks it."""
    for segment in log.segments:
        data = segment.file.read(0, segment.size_bytes)
        at = dict(headers(data))
        ends = {header.last_offset: header for header in at.values()}
        previous = (-1, -1)
        for number in range(segment.offsets.count):
            offset, position = segment.offsets.entry(number)
            assert at[position].last_offset == offset
            assert offset > previous[0] and position > previous[1]
            previous = offset, position
        previous = (-1, -1)
        for number in range(segment.times.count):
            timestamp, offset = segment.times.entry(number)
            assert ends[offset].max_timestamp == timestamp
            assert timestamp > previous[0] and offset > previous[1]
            previous = timestamp, offset
        largest = max((header.max_timestamp for header in at.values()), default=-1)
        assert segment.max_timestamp == largest


def names(base_offset: int) -> list[str]:
    return [file_name(base_offset, kind) for kind in (OFFSET_INDEX, LOG, TIME_INDEX)]


def offset_for_time(log: Log, timestamp: int | None, *, max_offset: int) -> TimeOffset | None:
    """The first record below `max_offset` with a timestamp at or after that; None: with the latest of all."""
    found = log.time_search(timestamp).whole()
    return found if found is not None and found.offset < max_offset else None


def max_timestamp_offset(log: Log, *, max_offset: int) -> TimeOffset | None:
    return offset_for_time(log, None, max_offset=max_offset)
