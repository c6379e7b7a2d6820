"""Groups that change their protocol: the same answers as a real Kafka, to members of either kind in the same group."""

from collections.abc import Iterator
from typing import Any

from tests.compat.conftest import Names
from tests.support.requests.beats import Flock
from tests.support.requests.classic import Actor, Crowd
from tests.support.requests.same import Both, Plain, Side

from ottla.wire import compile
from ottla.wire.journal.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest

TopicPartition = ConsumerProtocolSubscription.TopicPartition


def blob(message: Any, version: int) -> bytes:
    data = bytearray(version.to_bytes(2, "big"))
    compile.encoder(type(message), version)(message, data, [])
    return bytes(data)


def subscription(topics: list[str], owned: dict[str, list[int]] | None = None) -> dict[str, bytes]:
    """The protocols of a classic consumer."""
    listed = [TopicPartition(topic=topic, partitions=partitions) for topic, partitions in (owned or {}).items()]
    return {"range": blob(ConsumerProtocolSubscription(topics=topics, owned_partitions=listed), 1)}


def assignment(owned: dict[str, list[int]]) -> bytes:
    listed = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in owned.items()
    ]
    return blob(ConsumerProtocolAssignment(assigned_partitions=listed), 1)


def kind(side: Side, group: str) -> list[Plain]:
    listed = side.call(ListGroupsRequest(states_filter=[], types_filter=[]), 5)["groups"]
    return [each for each in listed if each["group_id"] == group]


def classic_description(crowd: Crowd) -> Plain:
    request = DescribeGroupsRequest(groups=[crowd.group], include_authorized_operations=False)
    return crowd.named(crowd.side.call(request, 6, blank=("error_message",)))


def test_there_and_back(both: Both, new_name: Names) -> None:
    group, topic = new_name("there-and-back"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 4)
        flock = Flock(side, group)
        with Crowd(side, group, 9) as crowd:
            anna = crowd.actor("anna", protocols=subscription([topic]))
            yield anna.join()
            yield anna.call(anna.syncs({anna.member_id: assignment({topic: [0, 1, 2, 3]})}))
            yield kind(side, group)
            bert = flock.bird("bert", [topic])
            yield bert.join()
            yield kind(side, group)
            yield crowd.named(flock.described())
            yield classic_description(crowd)
            # Anna hears that she has to rejoin, is given less, gives the rest back.
            yield anna.heartbeat()
            yield bert.beat()
            yield anna.join(protocols=subscription([topic], {topic: [0, 1, 2, 3]}))
            yield anna.call(anna.syncs())
            yield anna.heartbeat()
            yield crowd.named(flock.described())
            yield anna.join(protocols=subscription([topic], {topic: [0, 1]}))
            yield anna.call(anna.syncs())
            yield anna.heartbeat()
            yield bert.beat()
            yield crowd.named(flock.described())
            # Wrong ones.
            yield anna.heartbeat(generation_id=1)
            yield anna.heartbeat(member_id="nobody")
            yield anna.heartbeat(member_id="bert")
            yield anna.call(anna.syncs(generation_id=99))
            yield anna.call(anna.syncs(protocol_name="sticky"))
            yield anna.call(anna.syncs(protocol_type="connect"))
            yield anna.call(anna.syncs(member_id="bert"))
            yield crowd.actor("carl", protocols={"roundrobin": b""}).join()
            yield crowd.actor("carl", protocol_type="connect").join()
            yield anna.leave(("bert", None), ("nobody", None))
            # And back.
            yield bert.leave()
            yield kind(side, group)
            yield classic_description(crowd)
            yield anna.heartbeat()
            yield anna.join(protocols=subscription([topic], {topic: [0, 1]}))
            yield anna.call(anna.syncs({anna.member_id: b"all"}))
            yield anna.heartbeat()
            yield classic_description(crowd)
            yield crowd.named(flock.journal())

    both.same(script)


def test_a_classic_member_joins_and_leaves(both: Both, new_name: Names) -> None:
    group, topic = new_name("mixed"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 4)
        flock = Flock(side, group)
        with Crowd(side, group, 9) as crowd:
            bert = flock.bird("bert", [topic])
            yield bert.join()
            anna = crowd.actor("anna", protocols=subscription([topic]))
            yield anna.join()
            yield anna.call(anna.syncs())
            yield anna.heartbeat()
            yield crowd.named(flock.described())
            yield bert.beat()
            yield anna.heartbeat()
            yield bert.confirm()
            yield anna.heartbeat()  # what she waits for is free
            yield anna.join(protocols=subscription([topic]))
            yield anna.call(anna.syncs())
            yield anna.heartbeat()
            yield crowd.named(flock.described())
            yield anna.leave()
            yield anna.heartbeat()
            yield crowd.named(flock.described())
            yield bert.beat()
            yield bert.leave()
            yield kind(side, group)
            # An empty group gives way to either protocol.
            dora = crowd.actor("dora", protocols=subscription([topic]))
            yield dora.join()
            yield kind(side, group)
            yield dora.leave()
            yield kind(side, group)
            yield bert.join()
            yield kind(side, group)

    both.same(script)


def test_static_members_change_their_protocol(both: Both, new_name: Names) -> None:
    group, topic = new_name("static-migration"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        flock = Flock(side, group)
        with Crowd(side, group, 9) as crowd:
            anna = crowd.actor("anna", protocols=subscription([topic]), group_instance_id="a")
            yield anna.join()
            yield anna.call(anna.syncs({anna.member_id: assignment({topic: [0, 1]})}))
            new = flock.bird("new-anna", [topic], instance_id="a")
            yield new.join()  # takes the place of the classic one
            yield kind(side, group)
            yield anna.heartbeat()
            yield crowd.named(flock.described())
            yield new.leave(-2)
            old = crowd.actor("old-anna", protocols=subscription([topic]), group_instance_id="a")
            yield _without_protocols(old, old.join())
            yield kind(side, group)
            yield old.call(old.syncs())
            yield old.heartbeat()
            yield classic_description(crowd)

    both.same(script)


def _without_protocols(actor: Actor, answers: list[Plain]) -> Plain:
    return [actor.name, answers]


def test_groups_that_cannot_change(both: Both, new_name: Names) -> None:
    workers, simple, custom = new_name("workers"), new_name("simple"), new_name("custom")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, workers, 9) as crowd:
            worker = crowd.actor("worker", protocol_type="connect")
            yield worker.join()
            yield Flock(side, workers).bird("bert", ["t"]).join()
        with Crowd(side, simple, 9) as crowd:
            broken = crowd.actor("broken", protocols={"range": b"x"})
            yield broken.join()
            yield Flock(side, simple).bird("bert", ["t"]).join()
        with Crowd(side, custom, 9) as crowd:
            custom_one = crowd.actor("custom", protocols=subscription(["t"]))
            yield custom_one.join()
            data = blob(ConsumerProtocolAssignment(assigned_partitions=[], user_data=b"mine"), 1)
            yield custom_one.call(custom_one.syncs({custom_one.member_id: data}))
            yield Flock(side, custom).bird("bert", ["t"]).join()

    both.same(script)


def test_in_the_middle_of_a_rebalance(both: Both, new_name: Names) -> None:
    """Who waits in the classic group's rebalance is sent back to join anew, now in the consumer group."""
    group, topic = new_name("unsettled"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 6)
        flock = Flock(side, group)
        with Crowd(side, group, 9) as crowd:
            anna = crowd.actor("anna", protocols=subscription([topic]))
            yield anna.join()
            yield anna.call(anna.syncs({anna.member_id: assignment({topic: [0, 1, 2, 3, 4, 5]})}))
            carl = crowd.actor("carl", protocols=subscription([topic]))
            carl.start_join()
            bert = flock.bird("bert", [topic])
            yield bert.join()
            yield carl.answer()
            yield sizes(crowd.named(flock.described()))
            yield anna.heartbeat()
            yield carl.join(protocols=subscription([topic]))
            yield carl.call(carl.syncs())
            yield commit(side, group, topic, anna)
            for _ in range(3):
                held = {topic: [at for at in range(6) if at < 2]}
                anna.join(protocols=subscription([topic], held))
                anna.call(anna.syncs())
                bert.confirm()
                carl.join(protocols=subscription([topic]))
                carl.call(carl.syncs())
            yield sizes(crowd.named(flock.described()))
            yield commit(side, group, topic, anna)
            yield commit(side, group, topic, anna, generation=0)
            yield commit(side, group, topic, anna, generation=99)
            yield carl.leave()
            yield anna.leave(("", "nobody"), (anna.member_id, None))
            yield sizes(crowd.named(flock.described()))

    both.same(script)


def sizes(described: Plain) -> Plain:
    """How much everybody has: who gets which partitions depends on hashes."""
    (group,) = described["groups"]
    members = [
        {
            **member,
            **{
                kind: [len(each["partitions"]) for each in member[kind]["topic_partitions"]]
                for kind in ("assignment", "target_assignment")
            },
        }
        for member in group.pop("members")
    ]
    return group, sorted(members, key=lambda member: str(member["member_id"]))


def commit(side: Side, group: str, topic: str, actor: Actor, generation: int | None = None) -> Plain:
    part = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=7, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=actor.generation if generation is None else generation,
        member_id=actor.member_id,
        topics=[OffsetCommitRequest.Topic(name=topic, partitions=[part])],
    )
    return side.call(request, 8)
