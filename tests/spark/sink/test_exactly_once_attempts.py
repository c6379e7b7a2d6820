"""Both sides of the exactly-once protocol without Spark between them: attempts that race, batches that cannot be run
again, rows that were lost. Against Ottla and a real Kafka."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.spark.sinking import RUN, Sink, lose
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking
from ottla.client.producer.producer import Producer
from ottla.spark.sink import driver, log, task, transactions
from ottla.spark.sink.protocol import BATCH_RUN, BatchDecision, BatchRefused, Part, RecordPosition


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.compat)])
def client(request: pytest.FixtureRequest, node: OttlaNode) -> Iterator[Blocking]:
    bootstrap = node.bootstrap if request.param == "ottla" else request.getfixturevalue("real_kafka").bootstrap
    with Blocking(bootstrap) as made:
        yield made


@pytest.fixture
def sink(client: Blocking) -> Sink:
    return Sink(client)


def test_of_two_attempts_of_a_task_one_counts(sink: Sink) -> None:
    ticket = sink.prepare()
    first = sink.write(ticket, 0, 0, 0, 10)
    slow = sink.write(ticket, 0, 1, 10, 20)
    speculative = sink.write(ticket, 0, 1, 10, 20, attempt=1)
    sink.commit(first, speculative)
    assert sink.visible() == list(range(20))
    assert not sink.is_open(slow), "the one that lost holds up readers"
    # The same number again is not written again; the next one is.
    again = sink.prepare()
    sink.commit(sink.write(again, 0, 0, 0, 10), sink.write(again, 0, 1, 10, 20))
    sink.commit(sink.write(again, 1, 0, 20, 30))
    assert sink.visible() == list(range(30))


def test_an_attempt_of_a_retried_stage_has_the_same_number(sink: Sink) -> None:
    """A stage that is retried counts from 0 again, while attempts of the first time still run: each has its own
    transaction, and whichever Spark takes can be committed."""
    names = set()
    for batch, chosen in ((0, 0), (1, 2)):
        ticket = sink.prepare()
        siblings = [sink.write(ticket, batch, 0, 10 * batch, 10 * batch + 10) for _ in range(3)]
        names |= {each.part.transactional_id for each in siblings if each.part is not None}
        sink.commit(siblings[chosen])
        assert sink.visible() == list(range(10 * batch + 10))
        assert not any(sink.is_open(each) for each in siblings), "those that lost hold up readers"
    usual = transactions.task_id(sink.prepare().sink, 0, 0)
    assert len(names) == 5 and usual in names, "the usual id is used by every batch, the others by one attempt"
    assert all(name.startswith(usual) for name in names)


def test_a_job_that_failed_leaves_nothing(sink: Sink) -> None:
    ticket = sink.prepare()
    written = sink.write(ticket, 0, 0, 0, 10)
    driver.abort(sink.settings, [written, None])
    assert not sink.is_open(written)
    forgotten = sink.write(ticket, 0, 0, 0, 10)
    sink.prepare()
    assert not sink.is_open(forgotten), "the next batch aborts what is left of this one"
    assert sink.visible() == []


def test_who_prepared_before_cannot_commit(sink: Sink) -> None:
    old = sink.prepare()
    written = sink.write(old, 0, 0, 0, 10)
    new = sink.prepare()
    with pytest.raises(BatchRefused, match="another driver has taken over the sink"):
        sink.commit(written)
    late = sink.write(old, 0, 0, 0, 10)  # a task of the old driver that does not know
    with pytest.raises(BatchRefused, match="another driver has taken over the sink"):
        sink.commit(late)
    sink.commit(sink.write(new, 0, 0, 0, 10))
    assert sink.visible() == list(range(10))
    assert not sink.is_open(late)


def decide_and_lose(sink: Sink, batch: int, *, run: str = RUN) -> None:
    """A batch of two tasks, ten rows each, is decided; the second one's transaction ends before it is committed."""
    ticket = sink.prepare()
    begin = batch * 20
    first = sink.write(ticket, batch, 0, begin, begin + 10, run=run)
    second = sink.write(ticket, batch, 1, begin + 10, begin + 20, run=run)
    assert first.part is not None and second.part is not None
    decision = BatchDecision(run, batch, 2, (first.part, second.part))
    lose(sink.client, second.part)

    async def decide() -> None:
        async with Producer(sink.client.cluster, driver._producer(ticket.sink)) as producer:
            producer.adopt(ticket.taken)
            await log.write(producer, ticket.sink, decision)
            await driver._end(sink.client.cluster, decision)

    with pytest.raises(BatchRefused, match=r"the transactions of tasks \[1\] ended before they were committed"):
        sink.client.run(decide())


def test_what_was_lost_after_the_decision_is_written_again(sink: Sink) -> None:
    decide_and_lose(sink, 0)
    assert sink.visible() == list(range(10))
    ticket = sink.prepare()
    assert [part.task for part in ticket.state.lost] == [1]
    with pytest.raises(BatchRefused, match="does not give the same rows again"):
        sink.write(ticket, 0, 1, 10, 21)
    with pytest.raises(BatchRefused, match="had 2 tasks when it was decided and has 1 now"):
        sink.commit(sink.write(ticket, 0, 0, 0, 20))
    sink.run_batch(0, (0, 10), (10, 20))
    assert sink.visible() == list(range(20))
    last = sink.prepare().state.last
    assert last is not None
    assert (last.batch, last.revision, last.done) == (0, 1, True)


def test_rows_that_an_earlier_run_lost_are_not_forgotten(sink: Sink) -> None:
    """Neither by a query with another checkpoint, nor by a batch write, nor by the next batch of the same query."""
    decide_and_lose(sink, 3)
    ticket = sink.prepare()
    for run, batch in (("run-2", 0), (BATCH_RUN, ticket.batch), (RUN, 4)):
        with pytest.raises(BatchRefused) as refusal:
            sink.write(ticket, batch, 0, 100, 110, run=run)
        assert "run run-1, batch 3 was decided, but 10 rows of it (of tasks 1) were lost" in str(refusal.value)
        assert "run that query again, from its checkpoint" in str(refusal.value)
        assert "sink.give.up=run-1:3" in str(refusal.value)
    sink.run_batch(3, (60, 70), (70, 80))  # as the message says
    sink.run_batch(0, (100, 110), run="run-2")
    assert sink.visible() == [*range(60, 80), *range(100, 110)]
    # And rows that a batch write lost, by a stream.
    decide_and_lose(sink, 0, run=BATCH_RUN)
    with pytest.raises(BatchRefused, match=r"batch write 0 was decided, .* run that write again, with batch.id=0"):
        sink.run_batch(1, (110, 120), run="run-2")
    sink.settings = sink.with_options(sink_give_up="run-1:3")
    with pytest.raises(BatchRefused, match=r"sink\.give\.up=batch:0"):
        sink.run_batch(1, (110, 120), run="run-2")
    sink.settings = sink.with_options(sink_give_up="batch:0")
    sink.run_batch(1, (110, 120), run="run-2")
    assert sink.visible() == [*range(10), *range(60, 80), *range(100, 120)]


def test_rows_are_the_same_in_other_partitions(client: Blocking, sink: Sink) -> None:
    """What was lost is written again though the topic has more partitions by now: other batches, the same rows."""
    texts = [str(number) for number in range(1_000)]
    keyed = [pa.record_batch({"key": texts, "value": texts})]

    def written(ticket: driver.Ticket) -> driver.TaskReport:
        return task.write(sink.settings, ticket, keyed, run=RUN, batch=0, task=0, attempt=0)

    ticket = sink.prepare()
    first = written(ticket)
    assert first.part is not None
    decision = BatchDecision(RUN, 0, 1, (first.part,))

    async def decide() -> None:
        async with Producer(client.cluster, driver._producer(ticket.sink)) as producer:
            producer.adopt(ticket.taken)
            await log.write(producer, ticket.sink, decision)

    client.run(decide())
    lose(client, first.part)
    client.admin.topics.add_partitions(sink.topic, 50)
    sink.commit(written(sink.prepare()))
    assert sink.visible() == list(range(1_000))


def test_a_decision_may_have_many_parts(client: Blocking, sink: Sink) -> None:
    ticket = sink.prepare()
    place = RecordPosition(sink.topic, 1, 2**40)
    parts = [
        Part(task, f"ottla-spark/{ticket.sink}/task/{task}/0", 10**12 + task, 3, True, 10**6, 10**9, place)
        for task in range(20_000)
    ]
    decision = BatchDecision(RUN, 3, len(parts), tuple(parts), done=True)

    async def store() -> None:
        async with Producer(client.cluster, driver._producer(ticket.sink)) as producer:
            await log.write(producer, ticket.sink, decision)

    client.run(store())
    assert client.run(log.read(client.cluster, ticket.sink)) == decision


def test_the_state_of_one_sink_is_not_another_ones(client: Blocking, sink: Sink) -> None:
    sink.run_batch(7, (0, 10))
    name = sink.prepare().sink
    assert client.run(log.read(client.cluster, f"{name}-other")) is None
    found = client.run(log.read(client.cluster, name))
    assert found is not None
    assert (found.run, found.batch, found.done) == (RUN, 7, True)
    # A query without its old checkpoint is another run, whose batches begin with 0 again.
    sink.run_batch(0, (50, 60), run="run-2")
    assert sink.visible() == [*range(10), *range(50, 60)]
    # What the first run did is remembered: whoever still has its checkpoint does not write it a second time.
    sink.run_batch(7, (0, 10))
    sink.run_batch(8, (10, 20))
    sink.run_batch(0, (50, 60), run="run-2")
    assert sink.visible() == [*range(20), *range(50, 60)]


def test_transactions_of_other_sinks_are_left_alone(client: Blocking, sink: Sink) -> None:
    other = Sink(client)
    other.sink_id = f"{sink.sink_id}-1"
    other.settings = other.with_options()
    ticket = other.prepare()
    written = other.write(ticket, 0, 0, 0, 10)
    sink.run_batch(0, (0, 10))
    assert other.is_open(written)
    other.commit(written)
    assert other.visible() == list(range(10))
