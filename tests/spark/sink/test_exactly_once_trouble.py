"""The exactly-once protocol when time passes, coordinators are away, and its own topic is not what it should be.

A broker in the test's process, whose clock and faults are the test's.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.spark.sinking import Sink, lose

from ottla.client.blocking.blocking import Blocking
from ottla.spark.sink import driver, log
from ottla.spark.sink.faults import FaultPoint
from ottla.spark.sink.protocol import BatchRefused, UnfinishedBatch
from ottla.testing.broker import EmbeddedBroker

At = Callable[[FaultPoint, Callable[[], object]], None]
SETTINGS = {
    "transactional.id.expiration.ms": 3_600_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 600_000,
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    running = EmbeddedBroker(tmp_path_factory.mktemp("broker"), SETTINGS).start()
    yield running
    running.stop()


@pytest.fixture
def sink(broker: EmbeddedBroker) -> Iterator[Sink]:
    with Blocking(broker.bootstrap) as client:
        yield Sink(client)
    broker.heal()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    """Does something when the driver comes to a step, once."""
    todo: dict[FaultPoint, Callable[[], object]] = {}

    def reach(step: FaultPoint) -> None:
        action = todo.pop(step, None)
        if action is not None:
            action()

    monkeypatch.setattr(driver, "reach", reach)
    return todo.__setitem__


class Crash(Exception):
    """The driver is no more."""


def crash() -> None:
    raise Crash


def test_one_transaction_that_cannot_be_ended_keeps_back_no_other(sink: Sink, broker: EmbeddedBroker, at: At) -> None:
    """And what is decided stays so, though Spark asks for an abort after every commit that failed."""
    at(FaultPoint.COMMIT_DECIDED, lambda: broker.fail("EndTxn", "UNKNOWN_SERVER_ERROR"))
    ticket = sink.prepare()
    written = [sink.write(ticket, 0, index, 10 * index, 10 * index + 10) for index in range(3)]
    with pytest.raises(BatchRefused) as refusal:
        sink.commit(*written)
    assert "batch 0 is decided, but 1 of its 3 transactions, of tasks [0], could not be committed yet" in str(
        refusal.value
    )
    assert "Nothing is lost: run the query again" in str(refusal.value)
    driver.abort(sink.settings, written)
    assert sink.is_open(written[0])
    state = sink.prepare().state
    assert state.last is not None and state.last.done and not state.lost
    assert sink.visible() == list(range(30))
    sink.run_batch(0, (0, 10), (10, 20), (20, 30))
    assert sink.visible() == list(range(30))


def test_transactions_that_somebody_ended_did_not_time_out(sink: Sink) -> None:
    """Another attempt of the task, say, which looked before and took its id after this one began."""
    ticket = sink.prepare()
    written = sink.write(ticket, 0, 0, 0, 10)
    lose(sink.client, written.part)
    with pytest.raises(UnfinishedBatch, match=r"tasks \[0\] ended before batch 0 could be decided, .*another attempt"):
        sink.commit(written)
    sink.run_batch(0, (0, 10))
    assert sink.visible() == list(range(10))


def test_a_batch_that_takes_longer_than_its_transactions(
    sink: Sink, broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not decided. So it may even give other rows when it is run again."""
    ticket = sink.prepare()
    early = sink.write(ticket, 0, 0, 0, 10)
    broker.clock.advance("16m")
    monkeypatch.setattr(driver, "wall_clock_ms", lambda: ticket.made_ms + 960_000)
    late = sink.write(ticket, 0, 1, 10, 20)
    with pytest.raises(BatchRefused) as refusal:
        sink.commit(early, late)
    assert "the transactions of tasks [0] ended before batch 0 could be decided" in str(refusal.value)
    assert "960000 ms after it began (kafka.transaction.timeout.ms=900000)" in str(refusal.value)
    assert not isinstance(refusal.value, UnfinishedBatch), "it would last as long again"
    assert not sink.is_open(late), "rows that nobody will commit hold up readers"
    sink.run_batch(0, (0, 7), (7, 20))
    assert sink.visible() == list(range(20))


def test_a_batch_of_more_tasks_than_a_decision_can_name(sink: Sink, broker: EmbeddedBroker, at: At) -> None:
    at(FaultPoint.COMMIT_BEGUN, lambda: broker.fail("Produce", "MESSAGE_TOO_LARGE"))
    ticket = sink.prepare()
    written = sink.write(ticket, 0, 0, 0, 10)
    with pytest.raises(BatchRefused, match="batch 0 has 1 tasks, too many for one decision to name"):
        sink.commit(written)
    assert not sink.is_open(written)
    sink.run_batch(0, (0, 10))
    assert sink.visible() == list(range(10))


def test_time_passes_between_decision_and_end(sink: Sink, broker: EmbeddedBroker, at: At) -> None:
    at(FaultPoint.COMMIT_ONE_ENDED, lambda: broker.clock.advance("16m"))
    with pytest.raises(BatchRefused, match=r"the transactions of tasks \[1\] ended before they were committed"):
        sink.run_batch(0, (0, 10), (10, 20))
    assert sink.visible() == list(range(10))
    sink.run_batch(0, (0, 10), (10, 20))
    assert sink.visible() == list(range(20))


def test_the_broker_restarts_between_decision_and_end(sink: Sink, broker: EmbeddedBroker, at: At) -> None:
    at(FaultPoint.COMMIT_DECIDED, broker.restart)
    sink.run_batch(0, (0, 10), (10, 20))
    assert sink.visible() == list(range(20))


def test_transactional_ids_expire(sink: Sink, broker: EmbeddedBroker, at: At) -> None:
    """After a week without use (here: an hour) an id is forgotten: between batches, within one, before one is ended."""
    sink.run_batch(0, (0, 10), (10, 20))
    broker.clock.advance("2h")
    sink.run_batch(0, (0, 10), (10, 20))  # again
    sink.run_batch(1, (20, 30))
    assert sink.visible() == list(range(30))
    # Decided, all of it committed, but nobody wrote that down.
    at(FaultPoint.COMMIT_ENDED, crash)
    with pytest.raises(Crash):
        sink.run_batch(2, (30, 40), (40, 50))
    broker.clock.advance("2h")
    sink.run_batch(2, (30, 40), (40, 50))
    assert sink.visible() == list(range(50))
    # Decided, one committed, one not: that one timed out before it was forgotten.
    at(FaultPoint.COMMIT_ONE_ENDED, crash)
    with pytest.raises(Crash):
        sink.run_batch(3, (50, 60), (60, 70))
    broker.clock.advance("2h")
    sink.run_batch(3, (50, 60), (60, 70))
    assert sink.visible() == list(range(70))
    # The driver's own id is forgotten while its tasks work.
    ticket = sink.prepare()
    broker.clock.advance("2h")
    written = sink.write(ticket, 4, 0, 70, 80)
    with pytest.raises(
        BatchRefused, match=r"\(or its transactional id has expired\): batch 4 is not this one's to decide"
    ):
        sink.commit(written)
    sink.run_batch(4, (70, 80))
    assert sink.visible() == list(range(80))


def test_nobody_can_tell_what_became_of_rows_that_are_gone(sink: Sink, broker: EmbeddedBroker, at: At) -> None:
    at(FaultPoint.COMMIT_ENDED, crash)
    with pytest.raises(Crash):
        sink.run_batch(0, (0, 10))
    broker.clock.advance("2h")  # the coordinator has forgotten the transaction ...
    sink.client.admin.topics.delete_records(sink.topic, {0: -1, 1: -1})  # ... and the log its rows
    with pytest.raises(
        BatchRefused, match=r"of tasks \[0\], ended, and nobody can tell any more whether they were committed"
    ):
        sink.prepare()


def test_a_checkpoint_that_was_restored_from_a_backup(sink: Sink, tmp_path: Path) -> None:
    """Spark counts on from the backup: under a number that was written there are other rows now."""
    for spelling in (str(tmp_path), f"file://{tmp_path}/"):
        sink.settings = sink.with_options(checkpointLocation=spelling)
        (tmp_path / "offsets").mkdir(exist_ok=True)
        plan = tmp_path / "offsets" / "0"
        plan.write_text('v1\n{"batchTimestampMs":1}\n{"t":{"0":10}}')
        sink.run_batch(0, (0, 10))
        plan.write_text('v1\n{"batchTimestampMs":2}\n{"t":{"0":10}}')
        sink.run_batch(0, (0, 10))  # as it was
        plan.write_text('v1\n{"batchTimestampMs":2}\n{"t":{"0":20}}')
        with pytest.raises(BatchRefused, match=r"batch 0 was written before, from other offsets: .*restored"):
            sink.run_batch(0, (0, 20))
        assert sink.visible() == list(range(10))
    sink.settings = sink.with_options(checkpointLocation=str(tmp_path), sink_id=f"{sink.sink_id}-2")
    sink.run_batch(0, (0, 20))
    assert sink.visible() == sorted([*range(10), *range(20)])


def put_state(sink: Sink, value: bytes | None, key: str | None = None) -> None:
    sink.client.send(log.TOPIC, value, (key or driver.prepare(sink.settings).sink).encode())


def test_a_state_that_is_damaged(sink: Sink) -> None:
    sink.run_batch(0, (0, 10))
    put_state(sink, b"not a state", "somebody-else")  # harms nobody
    put_state(sink, b'{"form":2,"run":"x"}')
    with pytest.raises(BatchRefused) as refusal:
        sink.run_batch(1, (10, 20))
    message = str(refusal.value)
    assert message.startswith(f"the state of the sink '{sink.sink_id}' cannot be read (_ottla_spark_sinks, partition ")
    assert "it is no state of a sink (KeyError: 'parts')" in message
    assert "\n" not in message
    sink.client.send(log.TOPIC, None, sink.sink_id.encode())  # as the message says
    sink.run_batch(1, (10, 20))
    assert sink.visible() == list(range(20))


def test_a_topic_of_states_that_was_deleted_or_forgets(sink: Sink) -> None:
    sink.run_batch(0, (0, 10))
    sink.client.admin.topics.delete(log.TOPIC)
    sink.run_batch(1, (10, 20))
    assert sink.visible() == list(range(20))
    sink.client.admin.topics.delete(log.TOPIC)
    sink.client.admin.topics.create(log.TOPIC, 1, configs={"cleanup.policy": "delete"})
    with pytest.raises(BatchRefused, match=r"topic _ottla_spark_sinks must have cleanup\.policy=compact, not delete"):
        sink.run_batch(2, (20, 30))
    sink.client.admin.topics.delete(log.TOPIC)
