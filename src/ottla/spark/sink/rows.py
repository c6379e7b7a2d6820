"""Send rows: Arrow batches become record batches, without a Python object per row.

Rules:
- Rows are gathered until there are enough of them to make full record batches for many partitions.
- The client's event loop runs in a thread of its own, so that requests are sent while the task waits for more rows of
  Spark.
- `size_bytes` counts only the rows: it must be the same when they are written again, perhaps to other partitions.
- `first_place` is the position of one row of the task, after a flush: whether that record is visible tells later
  whether the transaction was committed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError, TopicUnknown
from ottla.client.metadata import NO_LEADER, TopicInfo
from ottla.client.producer.accumulator import RecordMetadata
from ottla.client.producer.producer import Producer
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.build import EncodedRecords
from ottla.records.build_columns import (
    BEGIN,
    COUNT,
    END,
    PARTITION,
    EncodedRows,
    choose,
    content_bytes,
    encode_rows,
    frozen,
)
from ottla.records.scan import Bytes
from ottla.spark.sink.columns import bytes_column, header_columns, partition_column
from ottla.spark.sink.schema import BadRows

# How long a broker may take to answer whether a topic exists, after the wait for the topic has timed out.
_ASK_S = 5.0


class RowSender:
    """Sends the rows of one task through one producer."""

    def __init__(self, client: Blocking, producer: Producer, topic: str | None, now_ms: Callable[[], int]) -> None:
        self.rows = 0
        self.size_bytes = 0
        self._client = client
        self._producer = producer
        self._topic = topic
        self._now_ms = now_ms
        self._batch_bytes = producer.options.batch_size_bytes
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._turns: dict[str, tuple[int, int]] = {}  # rows without a key: current partition, bytes left for it
        self._room: Bytes | None = None  # buffer for encoded records, which is used again
        self._first: asyncio.Future[RecordMetadata] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows; send them when enough are gathered."""
        if batch.num_rows == 0:
            return
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        rows = sum(each.num_rows for each in self._gathered)
        if self._gathered_bytes >= limits.SPARK_GATHERED_BYTES or rows >= limits.SPARK_GATHERED_ROWS:
            self.send()

    def send(self) -> None:
        """Send the gathered rows; waits only while the producer's buffer is full."""
        if not self._gathered:
            return
        (batch,) = pa.Table.from_batches(self._gathered).combine_chunks().to_batches()
        self._gathered, self._gathered_bytes = [], 0
        for topic, rows in self._by_topic(batch):
            self._client.run(self._post(topic, rows))

    def flush(self) -> None:
        """Wait until all rows are acknowledged. Raises the error if some could not be delivered."""
        self.send()
        self._client.run(self._producer.flush())
        if self._first is not None:
            self._first.result()  # the failure of a batch with a future is raised by the future, not by the flush

    def first_place(self) -> tuple[str, int, int] | None:
        """(topic, partition, offset) of one row, after a flush; None if there was no row."""
        if self._first is None:
            return None
        at = self._first.result()
        return at.topic, at.partition, at.offset

    def _by_topic(self, batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
        if self._topic is not None:
            return [(self._topic, batch)]
        topics = batch.column("topic")
        if topics.null_count:
            raise BadRows(
                "The Kafka message data sent to the producer contains a null topic. Use the `topic` option for setting "
                "a default topic."
            )
        names = pc.unique(topics).to_pylist()
        if len(names) == 1:
            return [(names[0], batch)]
        return [(name, batch.filter(pc.equal(topics, name))) for name in names]

    async def _post(self, topic: str, batch: pa.RecordBatch) -> None:
        info = await self._find(topic)
        encoded = self._encode(info, batch)
        self.rows += batch.num_rows
        now_ms, data = self._now_ms(), memoryview(encoded.data)  # type: ignore[arg-type]  # arrays are buffers
        for row in encoded.table:
            count = int(row[COUNT])
            records = EncodedRecords(data[row[BEGIN] : row[END]], count, count - 1, now_ms, now_ms)
            future = None
            if self._first is None:
                future = self._first = asyncio.get_running_loop().create_future()
                future.add_done_callback(_ignore_result)
            await self._producer.post_encoded(TopicPartition(topic, int(row[PARTITION])), records, future)

    async def _find(self, topic: str) -> TopicInfo:
        """The metadata of the topic. Raises BadRows if it does not exist, another error if no broker answers."""
        within = f"{self._producer.options.max_block_ms} ms"
        try:
            async with asyncio.timeout(self._producer.options.max_block_ms / 1000):
                return await self._client.cluster.topic(topic, auto_create=True)
        except TimeoutError:
            if not await self._is_absent(topic):
                raise TopicUnknown(f"nothing known of topic {topic!r} within {within}") from None
        except ApiError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if error.code.retriable:
                    raise
                raise BadRows(f"rows cannot be written to topic {topic!r}: {error.text}") from error
        raise BadRows(
            f"Topic {topic} not present in metadata after {within}: create it, or let brokers do so "
            "(auto.create.topics.enable)"
        )

    async def _is_absent(self, topic: str) -> bool:
        """Whether a broker answers now that the topic does not exist."""
        with contextlib.suppress(TimeoutError, ClientError, ApiError):
            async with asyncio.timeout(_ASK_S):
                _, errors = await self._client.cluster.refresh([topic])
                return errors.get(topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return False

    def _encode(self, info: TopicInfo, batch: pa.RecordBatch) -> EncodedRows:
        rows, count = batch.num_rows, info.partition_count
        column = {name: batch.column(name) for name in batch.schema.names}
        keys, values = bytes_column(column.get("key"), rows), bytes_column(column.get("value"), rows)
        given = partition_column(column.get("partition"), rows)
        if len(given) and given.max() >= count:
            raise BadRows(f"Partition {given.max()} of topic {info.name} is not in the range [0, {count})")
        led = [each.index for each in info.partitions if each.leader != NO_LEADER]
        available = frozen(np.array(led or [0], np.int32))
        # Tasks of one job begin at different partitions; otherwise the first partition would get all short batches.
        turn, left_bytes = self._turns.get(info.name) or (self._client.cluster.options.rng.randrange(len(available)), 0)
        chosen = np.empty(rows, np.int32)
        turn, left_bytes = choose(
            *keys, values.ends, given, count, available, turn % len(available), left_bytes, self._batch_bytes, chosen
        )
        self._turns[info.name] = (turn, left_bytes)
        headers = header_columns(column.get("headers"), rows)
        self.size_bytes += content_bytes(keys, values, headers)
        encoded = encode_rows(keys, values, headers, chosen, count, self._batch_bytes, self._room)
        self._room = encoded.data
        return encoded


def _ignore_result(future: asyncio.Future[RecordMetadata]) -> None:
    """Mark the exception as retrieved, so that asyncio does not log it; `flush` raises it."""
    if not future.cancelled():
        future.exception()
