"""Both sides of the exactly-once protocol without Spark between them: attempts that race, batches that cannot be run
again. Against Ottla and a real Kafka."""

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.support.node import OttlaNode

from ottla.client import handover
from ottla.client.blocking import Blocking
from ottla.client.producer import Producer
from ottla.client.ranges import ReadOptions
from ottla.client.transaction import OpenTransaction
from ottla.model.errors import ApiError
from ottla.spark.sink import driver, log, task
from ottla.spark.sink.protocol import Decision, Part, Place, Refused
from ottla.spark.sink.settings import WriteSettings, write_settings

RUN = "run-1"


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.compat)])
def client(request: pytest.FixtureRequest, node: OttlaNode) -> Iterator[Blocking]:
    bootstrap = node.bootstrap if request.param == "ottla" else request.getfixturevalue("real_kafka").bootstrap
    with Blocking(bootstrap) as made:
        yield made


@pytest.fixture
def sink(client: Blocking) -> WriteSettings:
    topic = f"attempts-{uuid4().hex[:8]}"
    client.admin.topics.create(topic, 2)
    address = client.cluster.options.bootstrap[0]
    options = {"kafka.bootstrap.servers": f"{address.host}:{address.port}", "topic": topic, "sink.id": f"sink-{topic}"}
    return write_settings(options, streaming=True)


def rows(begin: int, end: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"value": [str(number) for number in range(begin, end)]})]


def write(
    sink: WriteSettings, ticket: driver.Ticket, batch: int, index: int, begin: int, end: int, attempt: int = 0
) -> driver.Written:
    return task.write(sink, ticket, rows(begin, end), run=RUN, batch=batch, task=index, attempt=attempt)


def visible(client: Blocking, sink: WriteSettings) -> list[int]:
    assert sink.topic is not None
    return sorted(
        int(each.value or b"-1") for each in client.read(sink.topic, options=ReadOptions(read_committed=True))
    )


def is_open(client: Blocking, written: driver.Written) -> bool:
    assert written.part is not None
    return client.run(handover.find_open(client.cluster, written.part.transactional_id)) is not None


def lose(client: Blocking, part: Part | None) -> None:
    """As if its time were over."""
    assert part is not None
    opened = OpenTransaction(part.transactional_id, part.producer_id, part.epoch, part.implicit)
    assert client.run(handover.end(client.cluster, opened, committed=False))


def test_of_two_attempts_of_a_task_one_counts(client: Blocking, sink: WriteSettings) -> None:
    ticket = driver.prepare(sink)
    first = write(sink, ticket, 0, 0, 0, 10)
    slow = write(sink, ticket, 0, 1, 10, 20)
    speculative = write(sink, ticket, 0, 1, 10, 20, attempt=1)
    driver.commit(sink, [first, speculative], 0)
    assert visible(client, sink) == list(range(20))
    assert not is_open(client, slow), "the one that lost holds up readers"
    # The same number again is not written again; the next one is.
    again = driver.prepare(sink)
    driver.commit(sink, [write(sink, again, 0, 0, 0, 10), write(sink, again, 0, 1, 10, 20)], 0)
    driver.commit(sink, [write(sink, again, 1, 0, 20, 30)], 1)
    assert visible(client, sink) == list(range(30))


def test_a_job_that_failed_leaves_nothing(client: Blocking, sink: WriteSettings) -> None:
    ticket = driver.prepare(sink)
    written = write(sink, ticket, 0, 0, 0, 10)
    driver.abort(sink, [written, None])
    assert not is_open(client, written)
    forgotten = write(sink, ticket, 0, 0, 0, 10)
    driver.prepare(sink)
    assert not is_open(client, forgotten), "the next batch aborts what is left of this one"
    assert visible(client, sink) == []


def test_who_prepared_before_cannot_commit(client: Blocking, sink: WriteSettings) -> None:
    old = driver.prepare(sink)
    written = write(sink, old, 0, 0, 0, 10)
    new = driver.prepare(sink)
    with pytest.raises(ApiError, match="another producer uses the transactional id"):
        driver.commit(sink, [written], 0)
    driver.commit(sink, [write(sink, new, 0, 0, 0, 10)], 0)
    assert visible(client, sink) == list(range(10))


def test_what_was_lost_after_the_decision_is_written_again(client: Blocking, sink: WriteSettings) -> None:
    ticket = driver.prepare(sink)
    first, second = write(sink, ticket, 0, 0, 0, 10), write(sink, ticket, 0, 1, 10, 20)
    lose(client, second.part)
    with pytest.raises(Refused, match=r"the transactions of tasks \[1\] ended before they were committed"):
        driver.commit(sink, [first, second], 0)
    assert visible(client, sink) == list(range(10))
    ticket = driver.prepare(sink)
    assert [part.task for part in ticket.state.lost] == [1]
    with pytest.raises(Refused, match="does not give the same rows again"):
        write(sink, ticket, 0, 1, 10, 21)
    with pytest.raises(Refused, match="had 2 tasks when it was decided and has 1 now"):
        driver.commit(sink, [write(sink, ticket, 0, 1, 10, 20)], 0)
    ticket = driver.prepare(sink)
    driver.commit(sink, [write(sink, ticket, 0, 0, 0, 10), write(sink, ticket, 0, 1, 10, 20)], 0)
    assert visible(client, sink) == list(range(20))
    last = driver.prepare(sink).state.last
    assert last is not None
    assert (last.batch, last.revision, last.done) == (0, 1, True)


def test_rows_are_the_same_in_other_partitions(client: Blocking, sink: WriteSettings) -> None:
    """What was lost is written again though the topic has more partitions by now: other batches, the same rows."""
    texts = [str(number) for number in range(1_000)]
    keyed = [pa.record_batch({"key": texts, "value": texts})]

    def written(ticket: driver.Ticket) -> driver.Written:
        return task.write(sink, ticket, keyed, run=RUN, batch=0, task=0, attempt=0)

    first = written(driver.prepare(sink))
    lose(client, first.part)
    with pytest.raises(Refused, match="run the query again"):
        driver.commit(sink, [first], 0)
    assert sink.topic is not None
    client.admin.topics.add_partitions(sink.topic, 50)
    driver.commit(sink, [written(driver.prepare(sink))], 0)
    assert visible(client, sink) == list(range(1_000))


def test_a_decision_may_have_many_parts(client: Blocking, sink: WriteSettings) -> None:
    ticket = driver.prepare(sink)
    place = Place(sink.topic or "", 1, 2**40)
    parts = [
        Part(task, f"ottla-spark/{ticket.sink}/task/{task}/0", 10**12 + task, 3, True, 10**6, 10**9, place)
        for task in range(20_000)
    ]
    decision = Decision(RUN, 3, len(parts), tuple(parts), done=True)

    async def store() -> None:
        async with Producer(client.cluster, driver._producer(ticket.sink)) as producer:
            await log.write(producer, ticket.sink, decision)

    client.run(store())
    assert client.run(log.read(client.cluster, ticket.sink)) == decision


def test_the_state_of_one_sink_is_not_another_ones(client: Blocking, sink: WriteSettings) -> None:
    ticket = driver.prepare(sink)
    driver.commit(sink, [write(sink, ticket, 7, 0, 0, 10)], 7)
    assert client.run(log.read(client.cluster, f"{ticket.sink}-other")) is None
    found = client.run(log.read(client.cluster, ticket.sink))
    assert found is not None
    assert (found.run, found.batch, found.done) == (RUN, 7, True)
    # A query without its old checkpoint is another run, whose batches begin with 0 again.
    ticket = driver.prepare(sink)
    other = task.write(sink, ticket, rows(50, 60), run="run-2", batch=0, task=0, attempt=0)
    driver.commit(sink, [other], 0)
    assert visible(client, sink) == [*range(10), *range(50, 60)]
