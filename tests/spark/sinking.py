"""Both sides of the exactly-once protocol without Spark between them, for tests: a sink, its driver and its tasks."""

from uuid import uuid4

import pyarrow as pa
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.ranges import ReadOptions
from ottla.client.producer import handover
from ottla.client.producer.transaction import OpenTransaction
from ottla.spark.sink import driver, task
from ottla.spark.sink.protocol import Part
from ottla.spark.sink.settings import WriteSettings, write_settings

RUN = "run-1"


def rows(begin: int, end: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"value": [str(number) for number in range(begin, end)]})]


class Sink:
    """A sink that writes to a topic of its own."""

    def __init__(self, client: Blocking, **options: str) -> None:
        self.client = client
        self.topic = f"attempts-{uuid4().hex[:8]}"
        self.sink_id = f"sink-{self.topic}"
        client.admin.topics.create(self.topic, 2)
        self.settings = self.with_options(**options)

    def with_options(self, *, streaming: bool = True, **options: str) -> WriteSettings:
        """Settings as a query with these options has them."""
        address = self.client.cluster.options.bootstrap[0]
        given = {"kafka.bootstrap.servers": f"{address.host}:{address.port}", "topic": self.topic}
        given |= {"sink.id": self.sink_id, "delivery": "exactly_once"}
        return write_settings(
            given | {name.replace("_", "."): value for name, value in options.items()}, streaming=streaming
        )

    def prepare(self) -> driver.Ticket:
        return driver.prepare(self.settings)

    def write(
        self,
        ticket: driver.Ticket,
        batch: int,
        index: int,
        begin: int,
        end: int,
        *,
        attempt: int = 0,
        run: str = RUN,
    ) -> driver.TaskReport:
        return task.write(self.settings, ticket, rows(begin, end), run=run, batch=batch, task=index, attempt=attempt)

    def commit(self, *written: driver.TaskReport) -> None:
        driver.commit(self.settings, written, written[0].batch)

    def run_batch(self, batch: int, *ranges: tuple[int, int], run: str = RUN) -> None:
        """One batch from its beginning to its end; a task per range."""
        ticket = self.prepare()
        self.commit(*(self.write(ticket, batch, index, *each, run=run) for index, each in enumerate(ranges)))

    def visible(self) -> list[int]:
        """What readers of committed records see, as soon as all markers of ended transactions are written."""
        ending = ["PrepareCommit", "PrepareAbort"]
        until(lambda: self.client.admin.transactions.all(states=ending), lambda found: not found)
        found = self.client.read(self.topic, options=ReadOptions(read_committed=True))
        return sorted(int(each.value or b"-1") for each in found)

    def is_open(self, written: driver.TaskReport) -> bool:
        assert written.part is not None
        return self.client.run(handover.find_open(self.client.cluster, written.part.transactional_id)) is not None


def lose(client: Blocking, part: Part | None) -> None:
    """As if its time were over."""
    assert part is not None
    opened = OpenTransaction(part.transactional_id, part.producer_id, part.epoch, part.implicit)
    assert client.run(handover.end(client.cluster, opened, committed=False))
