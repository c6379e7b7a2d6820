"""ShareFetch and ShareAcknowledge: the same answers as a real Kafka, for sessions, acknowledgements and bad input."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.compat.conftest import Names
from tests.server.share_talk import ACCEPT, REJECT, RELEASE, RENEW, Member, configure
from tests.server.talk import produce
from tests.support.requests.raw import RawConnection
from tests.support.requests.same import Both, Plain, Side
from tests.support.waiting import WAIT_S, until

from ottla.records.build import build_batch
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest
from ottla.wire.messages.shares.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest

GAP = 0
NOBODY = "m" * 37


# A Kafka's coordinator hears of a group's settings a little later than its metadata shows them. A group that begins in
# between begins at the end of the topic and has nothing to acquire: then the comparison is made anew.
ATTEMPTS = 4


class NothingToAcquire(Exception):
    """However often it was asked."""


class BeganElsewhere(Exception):
    """Kafka's side of the comparison, that is."""


class Talk:
    """A topic with two partitions, some batches in the first, and members of one group on one side."""

    def __init__(self, side: Side, topic: str, group: str, *batches: int, **settings: object) -> None:
        self.side, self.topic, self.group = side, topic, group
        self.topic_id = side.create(topic, 2, **{"retention.ms": "-1"})  # the records are from 1970
        self.connection = RawConnection(side.bootstrap)
        configure(self.connection, group, share_auto_offset_reset="earliest", **settings)
        side.settle()  # a Kafka may begin with older settings else
        for size in batches:
            self.put(size)
        self.members: list[Member] = []

    def put(self, size: int) -> None:
        assert produce(self.connection, self.topic, build_batch([(None, b"x")] * size, timestamp=1_000))[0] == 0

    def join(self, name: str, *, joins: bool = True) -> Member:
        member = Member(self.side.bootstrap, self.group, name, self.topic, self.topic_id, joins=joins)
        self.members.append(member)
        return member

    def shown(self, answer: Any) -> Plain:
        """The answer, without the bytes and partitions with nothing to tell: Kafka may not have loaded them."""
        plain = self.side.plain(answer, 2)
        for topic in plain["responses"]:
            for data in topic["partitions"]:
                if "acquired_records" in data:
                    data["records"] = len(data["records"] or b"")
            topic["partitions"] = [each for each in topic["partitions"] if _says_something(each)]
        plain["responses"] = [topic for topic in plain["responses"] if topic["partitions"]]
        return plain

    def close(self) -> None:
        self.connection.close()
        for member in self.members:
            member.close()


def _says_something(data: dict[str, Plain]) -> bool:
    return "acquired_records" not in data or bool(
        data["acquired_records"] or data["error_code"] or data["acknowledge_error_code"]
    )


def both_say(
    both: Both, new_name: Names, script: Callable[[Talk], Iterator[Any]], *batches: int, **settings: object
) -> None:
    def run(side: Side) -> Iterator[Plain]:
        talk = Talk(side, topic, group, *batches, **settings)
        try:
            for answer in script(talk):
                yield talk.shown(answer)
        except NothingToAcquire as error:
            raise (BeganElsewhere if side is both.kafka else AssertionError)(str(error)) from error
        finally:
            talk.close()

    for attempt in range(ATTEMPTS):
        topic, group = new_name("topic"), new_name("group")
        try:
            both.same(run)
            return
        except BeganElsewhere:
            if attempt + 1 == ATTEMPTS:
                raise


def first_fetch(member: Member, **fields: Any) -> Any:
    """Kafka loads a share partition when it is first asked for; the first fetch of all may find nothing yet."""
    try:
        return until(
            lambda: member.fetch(max_wait_ms=500, **fields),
            lambda found: any(data.acquired_records for topic in found.responses for data in topic.partitions),
            timeout_s=WAIT_S / ATTEMPTS,
        )
    except AssertionError as error:
        raise NothingToAcquire(str(error)) from error


def test_sessions(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        for epoch in (1, 7, -1, -2):
            yield member.fetch(epoch=epoch)
            yield member.acknowledge_answer({}, epoch=epoch)
        yield member.acknowledge_answer({}, epoch=0)
        yield first_fetch(member)
        for epoch in (0, member.epoch + 1, member.epoch - 1, -2):
            yield member.acknowledge_answer({}, epoch=epoch)
        yield member.fetch(epoch=member.epoch + 1)
        yield member.fetch(epoch=member.epoch - 1)
        yield member.fetch()
        yield member.fetch(forget=[0])
        yield member.fetch()
        yield member.fetch(epoch=0)  # a new session; what it has it keeps
        member.epoch = 1
        yield member.fetch()
        yield member.fetch(epoch=-1)
        yield member.fetch()

    both_say(both, new_name, script, 3)


def test_who_asks(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        good = member.group_id, member.member_id
        for group_id, member_id in ((None, "anna"), (good[0], None), (good[0], ""), (good[0], NOBODY)):
            fetch = member.request()
            fetch.group_id, fetch.member_id = group_id, member_id
            yield member.connection.call(fetch, 2)
            acknowledge = ShareAcknowledgeRequest(
                group_id=group_id, member_id=member_id, share_session_epoch=1, topics=[]
            )
            yield member.connection.call(acknowledge, 2)

    both_say(both, new_name, script)


def test_partitions_that_are_not_there(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        yield member.fetch(partitions=[7])
        yield member.acknowledge_answer({7: [(0, 0, [ACCEPT])]})
        # A topic id that nobody has is left out: Kafka stumbles over it (UNKNOWN_SERVER_ERROR).

    both_say(both, new_name, script, 1)


def test_what_is_handed_out(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        anna, ben = talk.join("anna"), talk.join("ben")
        anna.fetch(max_wait_ms=0, partitions=[1])  # only loads
        anna.epoch = 0
        yield first_fetch(anna, max_records=4)
        yield ben.fetch(max_records=2, strict=True)
        yield ben.fetch(max_records=1)
        # With the fetch itself what is released may come too late in Kafka, which stores it meanwhile.
        yield anna.acknowledge_answer({0: [(0, 2, [RELEASE]), (3, 5, [ACCEPT])]})
        yield anna.fetch(max_records=2, strict=True)
        yield ben.fetch()
        yield anna.fetch(max_bytes=1)
        yield anna.fetch(max_records=0)

    both_say(both, new_name, script, 3, 3, 3, 3)


BAD_ACKS: list[list[tuple[int, int, list[int]]]] = [
    [(0, 0, [ACCEPT]), (0, 0, [ACCEPT])],
    [(3, 2, [ACCEPT])],
    [(4, 4, [ACCEPT]), (1, 1, [ACCEPT])],
    [(0, 2, [ACCEPT]), (1, 3, [ACCEPT])],
    [(0, 1, [ACCEPT]), (1, 2, [ACCEPT])],
    [(0, 1, [])],
    [(0, 2, [ACCEPT, ACCEPT])],
    [(0, 0, [ACCEPT, ACCEPT])],
    [(0, 0, [5])],
    [(0, 0, [-1])],
    [(0, 0, [RENEW])],  # without saying so
    [(0, 10, [ACCEPT])],
    [(20, 21, [ACCEPT])],
    [(0, 0, [ACCEPT]), (20, 21, [ACCEPT])],
]


def test_bad_acknowledgements_change_nothing(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        yield first_fetch(member)
        for acks in BAD_ACKS:
            yield member.acknowledge_answer({0: acks})
            yield member.fetch({0: acks})
        yield member.acknowledge_answer({0: [(0, 4, [ACCEPT])]})

    both_say(both, new_name, script, 5)


def test_an_offset_before_the_beginning_is_dealt_with(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        yield first_fetch(member)
        yield member.acknowledge_answer({0: [(-3, -2, [ACCEPT])]})
        yield member.acknowledge_answer({0: [(-1, 0, [ACCEPT])]})
        yield member.acknowledge_answer({0: [(0, 4, [ACCEPT])]})

    both_say(both, new_name, script, 5)


def test_acknowledgements(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        anna, ben = talk.join("anna"), talk.join("ben")
        yield anna.fetch({0: [(0, 0, [ACCEPT])]}, epoch=0)  # nothing can be acknowledged yet
        yield first_fetch(anna)
        yield ben.fetch()
        yield ben.acknowledge_answer({0: [(0, 0, [ACCEPT])]})  # not ben's
        yield anna.acknowledge_answer({0: [(0, 1, [ACCEPT])], 1: [(0, 0, [ACCEPT])]})
        yield anna.acknowledge_answer({0: [(0, 1, [ACCEPT])]})  # long dealt with
        yield anna.acknowledge_answer({0: [(3, 6, [ACCEPT, RELEASE, REJECT, GAP])]})
        yield anna.acknowledge_answer({0: [(3, 3, [ACCEPT])]})  # dealt with, but the start is before it
        yield anna.acknowledge_answer({0: [(0, 2, [ACCEPT])]})  # partly dealt with
        yield ben.fetch()
        yield anna.fetch({0: [(7, 8, [ACCEPT])]})
        yield anna.acknowledge_answer({0: [(9, 9, [ACCEPT])]}, epoch=-1)
        yield anna.fetch()
        yield ben.acknowledge_answer({0: [(4, 4, [ACCEPT])]}, version=1)
        yield ben.fetch({0: [(4, 4, [ACCEPT])]})
        yield ben.fetch({0: []}, epoch=-1)

    both_say(both, new_name, script, 10)


def test_renewing(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        yield first_fetch(member)
        yield member.acknowledge_answer({0: [(0, 0, [RENEW])]}, renew=True)
        yield member.acknowledge_answer({0: [(1, 3, [RENEW, ACCEPT, RELEASE])]}, renew=True)
        yield member.acknowledge_answer({0: [(2, 2, [RENEW])]}, renew=True)
        nothing: dict[str, Any] = {"max_records": 0, "max_bytes": 0, "min_bytes": 0, "max_wait_ms": 0}
        yield member.fetch({0: [(0, 0, [RENEW])]}, renew=True, **nothing)
        for name in nothing:
            yield member.fetch({0: [(0, 0, [RENEW])]}, renew=True, **nothing | {name: 1})
        yield member.fetch({0: [(0, 1, [ACCEPT])]})

    both_say(both, new_name, script, 4)


def test_renewing_can_be_forbidden(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        yield first_fetch(member)
        yield member.acknowledge_answer({0: [(0, 0, [RENEW])]}, renew=True)
        yield member.acknowledge_answer({0: [(0, 0, [ACCEPT])]}, renew=True)

    both_say(both, new_name, script, 1, share_renew_acknowledge_enable="false")


def test_delivery_limit_and_deleted_records(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        yield first_fetch(member)
        yield member.acknowledge_answer({0: [(0, 5, [RELEASE])]})
        yield member.fetch()
        yield member.acknowledge_answer({0: [(0, 5, [RELEASE])]})
        yield member.fetch()
        topic = DeleteRecordsRequest.Topic
        partition = topic.Partition(partition_index=0, offset=9)
        talk.connection.call(
            DeleteRecordsRequest(topics=[topic(name=talk.topic, partitions=[partition])], timeout_ms=10_000), 2
        )
        yield member.acknowledge_answer({0: [(6, 7, [ACCEPT])]})
        yield member.acknowledge_answer({0: [(8, 9, [ACCEPT])]})
        talk.put(1)
        yield member.fetch()

    both_say(both, new_name, script, 10, share_delivery_count_limit=2)


def test_what_is_delivered_often(both: Both, new_name: Names) -> None:
    """It comes in portions, smaller with each delivery, the last time alone."""

    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        answer = first_fetch(member)
        for _ in range(14):
            yield answer
            (data,) = [each for topic in answer.responses for each in topic.partitions if each.acquired_records]
            acks = [(each.first_offset, each.last_offset, [RELEASE]) for each in data.acquired_records]
            yield member.acknowledge_answer({0: acks})
            answer = member.fetch()

    both_say(both, new_name, script, 9, 5, share_delivery_count_limit=6)


def test_what_is_delivered_often_does_not_come_with_others(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        anna, ben = talk.join("anna"), talk.join("ben")
        yield first_fetch(anna, max_records=1)
        for _ in range(4):
            yield ben.fetch(max_records=2)
            yield ben.acknowledge_answer({0: [(1, 1, [RELEASE])]})
        yield anna.acknowledge_answer({0: [(0, 0, [RELEASE])]})
        yield ben.fetch(max_records=2)
        yield ben.fetch(max_records=2)
        yield ben.fetch(max_records=2)

    both_say(both, new_name, script, 1, 1, 1)


def test_what_is_named_without_records(both: Both, new_name: Names) -> None:
    """All that was read, in the first answer of a session; later only what was added. A wish for 0 bytes is granted."""
    topic, group = new_name("topic"), new_name("group")

    def named(answer: Any) -> list[tuple[int, int]]:
        assert answer.error_code == 0, answer
        return sorted((data.partition_index, data.error_code) for each in answer.responses for data in each.partitions)

    def run(side: Side) -> Iterator[Plain]:
        talk = Talk(side, topic, group)
        try:
            member = talk.join("anna")

            def opened(partitions: tuple[int, ...]) -> list[tuple[int, int]]:
                member.epoch = 0
                return named(member.fetch(partitions=partitions, min_bytes=0, max_wait_ms=60_000))

            until(lambda: opened((0, 1)), lambda found: len(found) == 2)
            yield opened((0,))
            yield named(member.fetch(max_wait_ms=10))
            yield named(member.fetch(add=(1,), max_wait_ms=10))
            yield named(member.fetch(add=(1,), max_wait_ms=10))
            yield named(member.fetch(add=(7,), max_wait_ms=10))
            yield named(member.fetch(max_wait_ms=10))
            yield named(member.fetch(epoch=-1, max_wait_ms=10))
        finally:
            talk.close()

    both.same(run)


def test_a_group_that_nobody_joined(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna", joins=False)
        yield member.fetch(max_wait_ms=2_000)
        yield member.acknowledge_answer({0: [(0, 0, [ACCEPT])]})
        talk.join("ben")
        yield first_fetch(member)
        yield member.acknowledge_answer({0: [(0, 2, [ACCEPT])]})

    both_say(both, new_name, script, 3)


def test_every_version(both: Both, new_name: Names) -> None:
    def script(talk: Talk) -> Iterator[Any]:
        member = talk.join("anna")
        first_fetch(member)
        for version in (1, 2):
            request: ShareFetchRequest = member.request({0: [(version, version, [ACCEPT])]})
            yield member.connection.call(request, version)
            member.epoch += 1
            yield member.acknowledge_answer({0: [(version + 2, version + 2, [ACCEPT])]}, version=version)

    both_say(both, new_name, script, 5)
