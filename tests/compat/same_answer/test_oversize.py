"""What is too large for a coordinator's journal: the same refusals as a real Kafka's, and groups that go on."""

from collections.abc import Iterator

from tests.compat.conftest import Names
from tests.compat.same_answer.test_offsets import commit, fetch, wait_for_coordinator
from tests.support.requests.classic import Actor, Crowd
from tests.support.requests.same import Both, Plain, Side
from tests.support.waiting import until

from ottla.model.errors import ErrorCode

LATE = ErrorCode.REBALANCE_IN_PROGRESS
PARTITIONS = 300  # with the longest metadata each, more than the 1 MiB that a batch may have


def test_more_offsets_than_a_batch_takes(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, PARTITIONS)
        wait_for_coordinator(side, group)
        yield commit(side, group, topic, 9, *((index, 1, "m" * 4096) for index in range(PARTITIONS)))
        yield commit(side, group, topic, 9, (0, 2, "m"))
        yield fetch(side, group, topic, 9, 0, 1)

    both.same(script)


def too_much(anna: Actor, bert: Actor) -> list[Plain]:
    """The leader assigns more than can be kept while the other waits for its share; what they are told.

    Nobody can see whether Kafka has read what the other one sent on a connection of its own: if it comes after the
    leader's it is told to join again, as the leader is. Then both do, and it is tried once more.
    """
    if bert.last is not None and bert.last.error_code == LATE:  # type: ignore[attr-defined]
        bert.start_join()
        anna.join()
        bert.answer()
    bert.send(bert.syncs())
    return [anna.call(anna.syncs({anna.member_id: b"x" * 2_000_000})), bert.answer()]


def test_assignments_that_are_too_large(both: Both, new_name: Names) -> None:
    group = new_name("oversize")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, 9) as crowd:
            anna, bert = crowd.actor("anna"), crowd.actor("bert")
            yield anna.join()
            yield anna.call(anna.syncs({anna.member_id: b"everything"}))
            bert.start_join()
            yield anna.join()
            yield bert.answer()
            yield from until(lambda: too_much(anna, bert), lambda told: told[1]["error_code"] != LATE)
            yield anna.heartbeat()
            yield bert.heartbeat()

    both.same(script)
