"""Streams groups (KIP-1071): the same answers as a real Kafka, to members who behave and to those who do not."""

from collections.abc import Iterator
from typing import Any

from tests.compat.conftest import Names
from tests.support.requests.same import Both, Plain, Side
from tests.support.requests.streamers import TaskIds, Topology, Troupe, internal, subtopology, topology

from ottla.wire.messages.groups import streams_group_heartbeat as messages
from ottla.wire.messages.groups.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.groups.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest


def is_ready(answer: Plain) -> bool:
    return not answer["status"] and bool(answer["active_tasks"])


def sizes(side: Side, *topics: str) -> Plain:
    """How many partitions topics have; 0: it does not exist."""
    wanted = [MetadataRequest.Topic(name=name) for name in topics]
    answer = side.call(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), 12)
    return {each["name"]: len(each["partitions"]) for each in answer["topics"]}


def test_members_come_and_go(both: Both, new_name: Names) -> None:
    group, topic = new_name("come-and-go"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 4)
        troupe = Troupe(side, group)
        play = topology(subtopology("0", topic))
        anna, bert = troupe.player("a", play), troupe.player("b", play)
        yield troupe.described()
        yield anna.join()
        yield troupe.described()
        yield anna.beat()
        yield anna.confirm()
        yield bert.join()
        yield troupe.described()
        yield bert.beat()  # all is still with anna
        yield anna.beat()  # she is told to give some back
        yield troupe.described()
        yield anna.beat()  # and has not yet
        yield bert.confirm()
        yield anna.confirm()  # now she has
        yield troupe.described()
        yield bert.beat()
        yield bert.confirm()
        yield troupe.described()
        yield anna.leave()
        yield troupe.described()
        yield anna.beat()
        yield bert.beat()
        yield bert.confirm()
        yield troupe.described()
        yield bert.leave()
        yield troupe.described()
        yield troupe.listed()
        yield bert.leave()
        yield troupe.journal()
        yield side.call(DeleteGroupsRequest(groups_names=[group]), 2)
        yield troupe.described()

    *_, journal, _, _ = both.same(script)
    assert len(journal) > 20


def test_internal_topics(both: Both, new_name: Names) -> None:
    """Their partitions follow from the topics that feed them; they are made with their settings."""
    group, left, right = new_name("internal"), new_name("left"), new_name("right")
    words, counts, fixed = f"{group}-words-repartition", f"{group}-counts-changelog", f"{group}-fixed-repartition"

    def script(side: Side) -> Iterator[Plain]:
        side.create(left, 3)
        side.create(right, 2)
        troupe = Troupe(side, group)
        play = topology(
            subtopology("0", left, repartition_sink_topics=[words]),
            subtopology(
                "1",
                right,
                repartition_source_topics=[internal(words, segment_bytes="50000000", cleanup_policy="delete")],
                state_changelog_topics=[internal(counts, cleanup_policy="compact")],
                repartition_sink_topics=[fixed],
            ),
            subtopology("2", repartition_source_topics=[internal(fixed, 5, 1)]),
        )
        anna = troupe.player("a", play, user_endpoint=messages.Endpoint(host="here", port=80))
        answer = anna.join()
        *_, missing = answer["status"][0]["status_detail"].split(": ")
        answer["status"][0]["status_detail"] = sorted(missing.split(", "))  # Kafka's order is that of a hash table
        yield answer
        answer = anna.until(is_ready)
        yield {**answer, "member_epoch": "", "endpoint_information_epoch": ""}
        yield sizes(side, words, counts, fixed)
        resource = DescribeConfigsRequest.Resource
        for name, keys in ((words, ["segment.bytes", "cleanup.policy"]), (counts, ["cleanup.policy"])):
            asked = resource(resource_type=2, resource_name=name, configuration_keys=keys)
            yield side.call(DescribeConfigsRequest(resources=[asked]), 4)
        described = troupe.described()["groups"][0]
        yield described["topology"], described["group_state"], described["members"][0]["assignment"]

    both.same(script)


def test_internal_topics_that_cannot_be(both: Both, new_name: Names) -> None:
    """The next heartbeats tell why."""
    group, topic = new_name("cannot"), new_name("topic")
    wanted = {
        "more replicas than brokers": internal(f"{group}-replicas", replicas=3),
        "a setting that is none": internal(f"{group}-setting", cleanup_policy="forever"),
        "a name that collides": internal(f"{group}-name".replace("-", "_")),
    }

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        side.create(f"{group}-name".replace("-", "."), 1)
        for number, (what, state) in enumerate(wanted.items()):
            troupe = Troupe(side, f"{group}-{number}")
            anna = troupe.player("a", topology(subtopology("0", topic, state_changelog_topics=[state])))
            joined = anna.join()
            (status,) = joined["status"]
            # Kafka's controller may have refused already, as it is asked before the member is answered.
            status["status_detail"] = status["status_detail"].partition("; Creation failed")[0]
            yield what, joined
            yield what, anna.until(lambda answer: "Creation failed" in answer["status"][0]["status_detail"])
            yield what, troupe.described()

    both.same(script)


def test_topics_that_do_not_fit(both: Both, new_name: Names) -> None:
    group, left, right = new_name("unfit"), new_name("left"), new_name("right")
    words, others = f"{group}-words", f"{group}-others"

    def copartitioned(one: messages.TopicInfo, other: messages.TopicInfo) -> Topology:
        return topology(
            subtopology("0", left, repartition_sink_topics=[one.name, other.name]),
            subtopology("1", repartition_source_topics=[one, other], copartitions=[([], [0, 1])]),
        )

    plays = {
        "no such source": topology(subtopology("0", "nowhere", "never", left, "none", "nil")),
        "not copartitioned": topology(subtopology("0", left, right, copartitions=[([0, 1], [])])),
        "fixed otherwise": topology(
            subtopology("0", left, repartition_sink_topics=[words]),
            subtopology("1", right, repartition_source_topics=[internal(words, 7)], copartitions=[([0], [0])]),
        ),
        "two fixed": copartitioned(internal(words, 4), internal(others, 5)),
        "a loop": topology(
            subtopology("0", repartition_source_topics=[internal(words)], repartition_sink_topics=[others]),
            subtopology("1", repartition_source_topics=[internal(others)], repartition_sink_topics=[words]),
        ),
        "never fed": topology(subtopology("0", left, repartition_source_topics=[internal(words)])),
        "no source": topology(subtopology("0", state_changelog_topics=[internal(words)])),
        "places that are not there": topology(subtopology("0", left, copartitions=[([3], [])])),
        "an existing one of another size": topology(
            subtopology("0", left, state_changelog_topics=[internal(right)]),
        ),
        "nothing": topology(),
    }

    def script(side: Side) -> Iterator[Plain]:
        side.create(left, 3)
        side.create(right, 2)
        Troupe(side, group)
        for number, (what, play) in enumerate(plays.items()):
            troupe = Troupe(side, f"{group}-{number}")
            anna = troupe.player("a", play)
            answer = anna.join()
            if answer["error_code"] == -1:
                answer["error_message"] = ""  # Kafka fell over
            yield what, answer
            yield what, anna.confirm() if anna.epoch else None
            yield what, troupe.described()
            yield what, troupe.listed(types_filter=["streams"])

    both.same(script)


def test_topics_come_grow_and_go(both: Both, new_name: Names) -> None:
    group, topic = new_name("grow"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        troupe = Troupe(side, group)
        anna = troupe.player("a", topology(subtopology("0", topic)))
        yield anna.join()
        yield troupe.described()
        side.create(topic, 1)
        yield anna.until(is_ready)
        yield troupe.described()
        more = CreatePartitionsRequest.Topic(name=topic, count=3, assignments=None)
        side.call(CreatePartitionsRequest(topics=[more], timeout_ms=5000, validate_only=False), 3)
        side.settle()
        yield anna.until(lambda answer: bool(answer["active_tasks"]))
        side.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 5)
        side.settle()
        yield anna.until(lambda answer: bool(answer["status"]) and answer["active_tasks"] is not None)
        yield anna.confirm()
        yield troupe.described()

    both.same(script)


def task(name: str, *partitions: int) -> list[TaskIds]:
    return [TaskIds(subtopology_id=name, partitions=list(partitions))]


OFFSETS = [StreamsGroupHeartbeatRequest.TaskOffset(subtopology_id="0", partition=0, offset=1)]
BAD: dict[str, dict[str, Any]] = {
    "no group id": {"group_id": ""},
    "blank group id": {"group_id": "  "},
    "no member id": {"member_id": ""},
    "static": {"instance_id": "i"},
    "empty instance id": {"instance_id": ""},
    "empty rack": {"rack_id": ""},
    "no timeout": {"rebalance_timeout_ms": -1},
    "absurd timeout": {"rebalance_timeout_ms": -7},
    "tasks not told": {"active_tasks": None, "standby_tasks": None, "warmup_tasks": None},
    "one role not told": {"standby_tasks": None},
    "owns active": {"active_tasks": task("0", 0)},
    "owns standby": {"standby_tasks": task("0", 0)},
    "owns warm-up": {"warmup_tasks": task("0", 0)},
    "no topology": {"topology": None},
    "task offsets": {"task_offsets": OFFSETS},
    "task end offsets": {"task_end_offsets": OFFSETS},
    "no offsets": {"task_offsets": []},
    "regex": {"topology": topology(subtopology("0", source_topic_regex=["a.*"]))},
    "internal topic": {"topology": topology(subtopology("0", "__consumer_offsets", "__transaction_state"))},
    "bad names": {"topology": topology(subtopology("0", "a/b", "", state_changelog_topics=[internal("c d")]))},
    "sized changelog": {"topology": topology(subtopology("0", "t", state_changelog_topics=[internal("c", 3)]))},
    "negative topology epoch": {"topology": topology(subtopology("0", "t"), epoch=-1)},
    "the same subtopology twice": {"topology": topology(subtopology("0", "t"), subtopology("0", "u"))},
    "topology while staying": {"member_epoch": 2},
    "static leave": {"member_epoch": -2, "topology": None},
    "static leave of an instance": {"member_epoch": -2, "topology": None, "instance_id": "i"},
    "epoch -3": {"member_epoch": -3, "topology": None},
    "leaves a group that is not there": {"member_epoch": -1, "topology": None},
    "stays in a group that is not there": {"member_epoch": 3, "topology": None},
    "huge epoch": {"member_epoch": 2**31 - 1, "topology": None},
    "no process": {"process_id": None},
    "no tags": {"client_tags": None},
}


def test_bad_heartbeats(both: Both, new_name: Names) -> None:
    """To groups that are not there, and to one with a member."""
    group, topic = new_name("bad"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        troupe = Troupe(side, group)
        play = topology(subtopology("0", topic))
        yield troupe.player("a", play).join()
        for number, (what, said) in enumerate(BAD.items()):
            bert = troupe.player("b", play)
            for group_id in (f"{group}-{number}", group):
                answer = bert.join(**{"group_id": group_id, **said})
                if answer["error_code"] == -1:
                    answer["error_message"] = ""  # Kafka fell over
                yield what, answer
                bert.leave(group_id=group_id)

    both.same(script)


def test_epochs_and_tasks_that_are_wrong(both: Both, new_name: Names) -> None:
    group, topic = new_name("epochs"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 4)
        troupe = Troupe(side, group)
        play = topology(subtopology("0", topic))
        anna, bert = troupe.player("a", play), troupe.player("b", play)
        yield anna.join()
        yield anna.join()  # the answer was lost
        yield bert.join()
        yield anna.beat()
        yield anna.beat(member_epoch=anna.epoch + 1)
        yield anna.confirm()
        yield anna.beat(member_epoch=anna.epoch - 1)
        yield anna.confirm(member_epoch=anna.epoch - 1)
        yield anna.confirm(member_epoch=anna.epoch - 1, active_tasks=task("0", 3))
        yield anna.confirm(active_tasks=task("1", 0))
        yield anna.confirm(active_tasks=task("0", 4))
        yield anna.confirm(active_tasks=task("0", -1))
        yield bert.beat(member_id="nobody")
        yield anna.join()  # anew, as if it had forgotten everything
        yield troupe.described()

    both.same(script)


def test_topologies_that_differ(both: Both, new_name: Names) -> None:
    group, topic = new_name("topologies"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        troupe = Troupe(side, group)
        yield troupe.player("a", topology(subtopology("0", topic), subtopology("1", topic), epoch=3)).join()
        bert = troupe.player("b", topology(subtopology("1", topic), subtopology("0", topic), epoch=3))
        yield bert.join()  # the order says nothing
        yield bert.leave()
        for epoch in (2, 3, 4):  # behind: it is told; otherwise another one is not accepted
            bert = troupe.player("b", topology(subtopology("0", topic), epoch=epoch))
            yield bert.join()
            yield bert.beat() if bert.epoch else None
            yield bert.leave()
        yield troupe.described()

    both.same(script)


def test_what_members_say_about_themselves(both: Both, new_name: Names) -> None:
    group, topic = new_name("said"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        troupe = Troupe(side, group, **{"streams.heartbeat.interval.ms": "6000"})
        tags = [messages.KeyValue(key="zone", value="z"), messages.KeyValue(key="area", value="a")]
        anna = troupe.player("a", topology(subtopology("0", topic)), rack_id="r", client_tags=tags)
        yield anna.join()
        yield anna.beat(rack_id="r")
        yield anna.beat(rack_id="other")
        yield anna.beat(user_endpoint=StreamsGroupHeartbeatRequest.Endpoint(host="h", port=1))
        yield anna.beat(process_id="another", rebalance_timeout_ms=5000, client_tags=[])
        yield anna.beat(endpoint_information_epoch=-1)
        yield troupe.described()
        yield anna.beat(shutdown_application=True)
        yield troupe.player("b", topology(subtopology("0", topic))).join()
        yield anna.beat()
        yield troupe.journal()

    both.same(script)


def test_standby_copies(both: Both, new_name: Names) -> None:
    """As many as the group wants and there are processes for; a setting that changes leads to another assignment."""
    group, topic = new_name("standby"), new_name("topic")
    state = f"{group}-state"

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 3)
        side.create(state, 3)
        troupe = Troupe(side, group, **{"streams.num.standby.replicas": "1"})
        play = topology(subtopology("0", topic, state_changelog_topics=[internal(state)]))
        players = [troupe.player(name, play) for name in "abc"]
        for each in players:
            yield each.join()
        for _ in range(3):
            for each in players:
                yield each.confirm()
        yield troupe.described()
        troupe.configure(**{"streams.num.standby.replicas": "2"})
        for _ in range(2):
            for each in players:
                yield each.confirm()
        yield troupe.described()
        players[1].leave()
        for _ in range(3):
            for each in (players[0], players[2]):
                yield each.confirm()
        yield troupe.described()

    both.same(script)


def test_threads_of_processes(both: Both, new_name: Names) -> None:
    group, topic, other = new_name("threads"), new_name("topic"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 5)
        side.create(other, 2)
        troupe = Troupe(side, group)
        play = topology(subtopology("0", topic), subtopology("1", other))
        threads = {"a": "p", "b": "p", "c": "q"}
        players = [troupe.player(name, play, process_id=process) for name, process in threads.items()]
        for each in players:
            yield each.join()
        for _ in range(4):
            for each in players:
                yield each.confirm()
        yield troupe.described()

    both.same(script)


def test_a_delay_for_more_members(both: Both, new_name: Names) -> None:
    group, topic = new_name("delay"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        troupe = Troupe(side, group, **{"streams.initial.rebalance.delay.ms": "1000"})
        play = topology(subtopology("0", topic))
        # Of processes that are alike Kafka takes the one that its hash table has first: here the first by name.
        anna, bert = troupe.player("a", play, process_id="p2"), troupe.player("b", play, process_id="p3")
        yield anna.join()
        yield bert.join()
        yield anna.beat()
        yield troupe.described()
        yield anna.until(is_ready)
        yield bert.confirm()
        yield troupe.described()

    both.same(script)
