"""A checker that cannot fail proves nothing: every claim of the `TopicBook`, kept and broken."""

import pytest

from ottla.client.consumer.fetching import ConsumedRecord
from ottla.model.ids import TopicPartition
from ottla.sim.check import Payload
from ottla.sim.ledger import TransactionName
from ottla.sim.topics.check import HEADER, TopicBook, content_of

PARTITION = TopicPartition("k", 0)
PLAIN: dict[str, str] = {"cleanup.policy": "delete"}
COMPACT = {"cleanup.policy": "compact"}
TRANSACTION = TransactionName(0, 1)


class Story:
    """A topic with one partition, and a book about it."""

    def __init__(self, configs: dict[str, str] | None = None, *, replicated: bool = False) -> None:
        self.wrong: list[str] = []
        self.book = TopicBook(self.wrong.append, replicated=replicated)
        self.book.made("k", 1, PLAIN if configs is None else configs)
        self.log: dict[int, ConsumedRecord] = {}

    def send(
        self, sequence: int, key: bytes = b"a", *, tombstone: bool = False, txn: TransactionName | None = None
    ) -> Payload:
        payload = Payload(0, 0, sequence)
        self.book.sending(payload, PARTITION, key, is_tombstone=tombstone, transaction=txn)
        return payload

    def write(self, offset: int, payload: Payload, *, acked: bool = True) -> ConsumedRecord:
        sent = self.book.sent[payload]
        value = None if sent.is_tombstone else b"value"
        headers = ((HEADER, content_of(payload, sent.key, value)),)
        self.log[offset] = ConsumedRecord("k", 0, offset, 0, sent.key, value, headers, 0)
        if acked:
            self.book.acked(payload, offset)
        return self.log[offset]

    def judge(self, start: int = 0, end: int | None = None) -> str:
        end = max(self.log, default=-1) + 1 if end is None else end
        self.book.judge(PARTITION, start, end, [self.log[each] for each in sorted(self.log) if each >= start])
        return "\n".join(self.wrong)


def written(count: int, configs: dict[str, str] | None = None) -> Story:
    story = Story(configs)
    for number in range(count):
        story.write(number, story.send(number, b"ab"[number % 2 : number % 2 + 1]))
    return story


def test_all_is_well() -> None:
    assert written(6).judge() == ""


def test_lost() -> None:
    story = written(6)
    del story.log[4]
    assert "lost" in story.judge()
    assert "not dense: 4" in story.judge()


def test_compaction_may_take_what_is_older() -> None:
    story = written(6, COMPACT)
    del story.log[0], story.log[1]
    assert story.judge() == ""
    assert story.book.excused == 2
    del story.log[5]
    assert "key b'b'" in story.judge(), "the newest of its key"


def test_compaction_counts_from_when_it_was_asked_for() -> None:
    story = written(6)
    story.book.configuring("k", COMPACT)
    story.book.configuring("k", PLAIN)
    del story.log[0]
    assert story.judge() == ""


@pytest.mark.parametrize("gone", [(), (4,), (0, 4)])
def test_a_tombstone_may_go_with_what_it_deletes(gone: tuple[int, ...]) -> None:
    story = written(2, COMPACT)
    story.write(4, story.send(4, b"a", tombstone=True))
    for offset in gone:
        del story.log[offset]
    assert ("revived" in story.judge()) == (gone == (4,))


@pytest.mark.parametrize("replicated", [False, True])
def test_a_follower_copies_what_came_after_a_tombstone_that_went(replicated: bool) -> None:
    story = Story(COMPACT, replicated=replicated)
    for offset, tombstone in ((0, False), (1, True), (2, False)):
        story.write(offset, story.send(offset, tombstone=tombstone))
    del story.log[1]
    assert ("revived" in story.judge()) == (not replicated)


def test_what_was_aborted_is_never_returned() -> None:
    story = Story()
    story.book.begin(TRANSACTION)
    record = story.write(0, story.send(0, txn=TRANSACTION), acked=False)
    story.book.read(record, story.book.era("k"))
    assert "aborted record" in story.wrong.pop()
    story.book.ending(TRANSACTION)
    story.book.read(record, story.book.era("k"))
    assert not story.wrong, "somebody asked for the commit"


def test_aborted_records_excuse_nothing() -> None:
    story = written(1, COMPACT)
    story.book.begin(TRANSACTION)
    story.send(1, b"a", tombstone=True, txn=TRANSACTION)
    del story.log[0]
    assert "lost" in story.judge(end=2)


def test_invented_and_corrupt() -> None:
    story = written(1)
    record = story.log[0]
    for wrong, what in (
        (record._replace(value=b"other"), "corrupt"),
        (record._replace(headers=()), "corrupt"),
        (record._replace(key=b"b", headers=((HEADER, content_of(Payload(0, 0, 0), b"b", b"value")),)), "invented"),
        (record._replace(headers=((HEADER, content_of(Payload(0, 0, 9), b"a", b"value")),)), "invented"),
    ):
        story.book.read(wrong, story.book.era("k"))
        assert what in story.wrong.pop()


def test_another_record_at_the_same_offset() -> None:
    story = written(2)
    story.book.acked(story.send(2), 1)
    assert "and is now" in story.wrong.pop()


def test_duplicates_and_order() -> None:
    story = Story()
    first, second = story.send(0), story.send(1)
    story.write(0, second)
    story.write(1, first)
    assert "reordered" in story.judge()
    story = Story()
    story.write(0, story.send(0))
    story.write(1, Payload(0, 0, 0), acked=False)
    assert "duplicate" in story.judge()


def test_the_log_start() -> None:
    assert "but only 0 was asked for" in written(4).judge(start=2)
    story = written(4)
    story.book.erasing(PARTITION, 2)
    assert story.judge(start=2) == ""
    assert "went back" in story.judge(start=1)
    story = written(4)
    story.book.configuring("k", {"retention.ms": "100"})
    assert story.judge(start=3) == ""


def test_a_topic_that_is_made_anew() -> None:
    story = written(3)
    old = story.log[0]
    story.book.deleting("k")
    late = story.send(5)
    story.book.acked(late, 7)  # by which of the two?
    story.book.made("k", 1, PLAIN, topic_id=b"new")
    assert story.book.id_of("k") == b"new"
    story.log = {}
    assert story.judge() == ""
    story.book.read(old, story.book.era("k"))
    assert "of a topic that was deleted" in story.wrong.pop()


def test_a_loss_of_power_takes_the_end() -> None:
    story = written(6)
    story.book.power_lost()
    story.book.survived(PARTITION, 2, 4, may_lose=True)
    story.log = {offset: record for offset, record in story.log.items() if offset < 4}
    assert story.judge() == ""
    del story.log[3]
    assert "lost" in story.judge(), "nothing is missing before the end"


def test_a_loss_of_power_takes_nothing_that_was_synced() -> None:
    story = written(6)
    story.book.survived(PARTITION, 5, 4, may_lose=True)
    assert "left 4 of 5" in story.wrong.pop()
    story = written(6)
    story.book.survived(PARTITION, 4, 4, may_lose=False)
    del story.log[5]
    assert "lost" in story.judge(), "acknowledged when it was on disk"


def test_what_was_acknowledged_over_a_loss_of_power_has_no_place() -> None:
    story = Story()
    payload = story.send(0)
    story.book.power_lost()
    story.book.acked(payload, 0)
    assert story.judge() == ""
