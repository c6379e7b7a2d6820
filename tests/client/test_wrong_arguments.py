"""Arguments that no request can carry: each operation says at once which argument it is, and asks no broker.

`WireError` is a ValueError, too: it would name a field of a message, which the caller has never seen.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.partitions import ScriptedPartitions
from tests.client.scripted import ScriptedBroker
from tests.support.waiting import WAIT_S

from ottla.client.admin import Admin
from ottla.client.admin.configs import Change
from ottla.client.admin.quotas import QuotaEntity
from ottla.client.admin.topics import NewTopic
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.offsets import Time
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.consumer.ranges import RangeReader, Span
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.options import ShareOptions
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource, ResourceType
from ottla.security.sasl.scram.credentials import ScramMechanism
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest
from ottla.wire.types import WireError

HUGE = 10**30
TP = TopicPartition("t", 0)
ALICE = QuotaEntity(user="alice")
ODD: Any = TopicPartition("t", "0")  # type: ignore[arg-type]
FAR = TopicPartition("t", HUGE)
PAIR = "a partition is the name of a topic and a number"
NO_PARTITION = "numbered from 0: there is no"
LIST = "a list of TopicPartition.* is needed"
NUMBER = "must be a whole number, not"
ID = "the id of a group must be text, not int"

Call = tuple[Callable[[Any], Any], str]

ADMIN: list[Call] = [
    (lambda it: it.topics.create("x", partitions="3"), f"partitions {NUMBER} str"),
    (lambda it: it.topics.create("x", partitions=3.5), f"partitions {NUMBER} float"),
    (lambda it: it.topics.create("x", partitions=True), f"partitions {NUMBER} bool"),
    (lambda it: it.topics.create("x", partitions=HUGE), "partitions has to be from"),
    (lambda it: it.topics.create("x", replication_factor="1"), f"replication_factor {NUMBER} str"),
    (lambda it: it.topics.create("x", replication_factor=40_000), "replication_factor has to be from"),
    (lambda it: it.topics.create(5), "topic must be text, not int"),
    (lambda it: it.topics.create_each(["x"]), r"a list of NewTopic\(\.\.\.\) is needed, not of str"),
    (lambda it: it.topics.create_each([NewTopic("x", assignments={"0": [1]})]), f"index of a partition {NUMBER} str"),  # type: ignore[dict-item]
    (lambda it: it.topics.create_each([NewTopic("x", assignments={0: ["1"]})]), f"id of a broker {NUMBER} str"),  # type: ignore[list-item]
    (lambda it: it.topics.delete_each("orders"), "a list of names is needed, not 'orders'"),
    (lambda it: it.topics.add_partitions("t", "4"), f"total {NUMBER} str"),
    (lambda it: it.topics.add_partitions(5, 4), "topic must be text, not int"),
    (lambda it: it.topics.describe(5), "topic must be text, not int"),
    (lambda it: it.topics.describe_each("t"), "a list of names is needed for topic, not 't'"),
    (lambda it: it.topics.offsets("t", 5, [0]), r"a Time \(in milliseconds\) is needed, not int"),
    (lambda it: it.topics.offsets("t", Time(HUGE), [0]), "a time has to be from"),
    (lambda it: it.topics.offsets("t", partitions=["0"]), PAIR),
    (lambda it: it.topics.bounds_each([FAR]), NO_PARTITION),
    (lambda it: it.topics.bounds_each(TP), LIST),
    (lambda it: it.topics.delete_records("t", {0: "5"}), f"offset of t-0 {NUMBER} str"),
    (lambda it: it.topics.delete_records("t", {0: HUGE}), "offset of t-0 has to be from"),
    (lambda it: it.topics.delete_records("t", {"0": 5}), PAIR),
    (lambda it: it.topics.producers(ODD), PAIR),
    (lambda it: it.configs.describe("t"), r"a resource is Resource\.topic"),
    (lambda it: it.configs.describe(Resource(ResourceType.BROKER, "me")), "as a resource is its id, not 'me'"),
    (lambda it: it.configs.describe(Resource.topic("t"), "retention.ms"), "a list of names is needed for a setting"),
    (lambda it: it.configs.set("t", {"retention.ms": 1}), r"a resource is Resource\.topic"),
    (lambda it: it.configs.set(Resource.topic("t"), [("retention.ms", 1)]), "a mapping of settings to values"),
    (lambda it: it.configs.alter(Resource.topic("t"), [Change("a", [1])]), "value of a must be text or a number"),  # type: ignore[arg-type]
    (lambda it: it.groups.all(states="Empty"), "a list of names is needed for a state"),
    (lambda it: it.groups.describe(5), ID),
    (lambda it: it.groups.delete(5), ID),
    (lambda it: it.groups.delete_each("g"), "a list of names is needed"),
    (lambda it: it.groups.offsets(5), ID),
    (lambda it: it.groups.offsets("g", [ODD]), PAIR),
    (lambda it: it.groups.set_offsets("g", {TP: "5"}), "an offset of t-0 must be a number, not str"),
    (lambda it: it.groups.set_offsets("g", {TP: HUGE}), "an offset of t-0 is at most"),
    (lambda it: it.groups.set_offsets("g", {TP: (5, "1", "")}), f"leader_epoch {NUMBER} str"),
    (lambda it: it.groups.set_offsets("g", {TP: (5, 1, 7)}), "metadata must be text, not int"),
    (lambda it: it.groups.set_offsets("g", [TP]), "a mapping of partitions to offsets is needed, not list"),
    (lambda it: it.groups.delete_offsets("g", [FAR]), NO_PARTITION),
    (lambda it: it.groups.lag("g", [ODD]), PAIR),
    (lambda it: it.shares.places(5), ID),
    (lambda it: it.shares.move("g", {TP: "5"}), "an offset of t-0 must be a number, not str"),
    (lambda it: it.shares.forget("g", "t"), "a list of names is needed for topic"),
    (lambda it: it.transactions.all(states="Ongoing"), "a list of names is needed for a state"),
    (lambda it: it.transactions.all(producer_ids=["5"]), f"the id of a producer {NUMBER} str"),
    (lambda it: it.transactions.all(running_ms="5"), f"running_ms {NUMBER} str"),
    (lambda it: it.transactions.describe(5), "the transactional id must be text, not int"),
    (lambda it: it.transactions.abort(None), "the transactional id must be text, not None"),
    (lambda it: it.transactions.abort_in(ODD, 0), PAIR),
    (lambda it: it.transactions.abort_in(TP, "0"), f"start_offset {NUMBER} str"),
    (lambda it: it.replicas.reassign({TP: ["1"]}), f"the id of a broker {NUMBER} str"),
    (lambda it: it.replicas.reassign({ODD: [1]}), PAIR),
    (lambda it: it.replicas.cancel([FAR]), NO_PARTITION),
    (lambda it: it.replicas.reassignments([ODD]), PAIR),
    (lambda it: it.replicas.elect(TP), LIST),
    (lambda it: it.replicas.move_to_disk("1", {TP: "/x"}), f"the id of a broker {NUMBER} str"),
    (lambda it: it.replicas.move_to_disk(1, {TP: 5}), "a log directory must be text, not int"),
    (lambda it: it.nodes.api_versions("1"), f"the id of a broker {NUMBER} str"),
    (lambda it: it.nodes.log_dirs(["1"]), f"the id of a broker {NUMBER} str"),
    (lambda it: it.nodes.unregister("1"), f"the id of a broker {NUMBER} str"),
    (lambda it: it.nodes.update_features({"metadata.version": "25"}), f"the level of a feature {NUMBER} str"),
    (lambda it: it.users.set_password("q", ""), "the password is empty"),
    (lambda it: it.users.set_password("q", "  "), "the password has only blanks"),
    (lambda it: it.users.set_password("q", "x\udce9"), "the password is not text in UTF-8$"),
    (lambda it: it.users.set_password("q", 5), "the password must be text, not int"),
    (lambda it: it.users.set_password(None, "x"), "the name of the user must be text, not None"),
    (lambda it: it.users.set_password("*", "x"), "stands for everybody"),
    (lambda it: it.users.set_password("q", "x", mechanism=1), "must be a ScramMechanism, not int"),
    (lambda it: it.users.set_password("q", "x", iterations="5"), f"iterations {NUMBER} str"),
    (lambda it: it.users.set_password_each(["q"]), r"a list of ScramPassword\(\.\.\.\) is needed, not of str"),
    (lambda it: it.users.describe(5), "the name of the user must be text, not int"),
    (lambda it: it.users.remove(None, ScramMechanism.SHA_256), "the name of the user must be text, not None"),
    (lambda it: it.quotas.alter(ALICE, {"request_percentage": "x"}), "request_percentage must be a number or None"),
    (lambda it: it.quotas.alter(ALICE, {"request_percentage": True}), "must be a number or None, not bool"),
    (lambda it: it.quotas.alter(ALICE, {5: 5.0}), "the name of a quota must be text, not int"),
    (lambda it: it.quotas.alter("alice", {"request_percentage": 5}), r"belongs to QuotaEntity\(\.\.\.\), not to str"),
    (lambda it: it.quotas.alter(QuotaEntity(user=5), {}), "the user of a quota must be text, not int"),  # type: ignore[arg-type]
    (lambda it: it.tokens.create(max_lifetime_ms=0), "max_lifetime_ms has to be from 1"),
    (lambda it: it.tokens.create(max_lifetime_ms="7d"), f"max_lifetime_ms {NUMBER} str"),
    (lambda it: it.topics.describe("x\ud800"), "^topic is not text in UTF-8$"),
    (
        lambda it: it.topics.bounds_each([TopicPartition("\udcff", 0)]),
        "^the topic of a partition is not text in UTF-8$",
    ),
    (lambda it: it.configs.describe(Resource.topic("\udcff")), "^the name of a resource is not text in UTF-8$"),
    (lambda it: it.configs.set(Resource.topic("t"), {"a": "\udcff"}), "^the value of a is not text in UTF-8$"),
    (lambda it: it.groups.describe("\udcff"), "^the id of a group is not text in UTF-8$"),
    (lambda it: it.voters.add("1", bytes(16), []), f"the id of a controller {NUMBER} str"),
    (lambda it: it.voters.remove(1, b"short"), "the id of a directory is 16 bytes"),
]

CONSUMER: list[Call] = [
    (lambda it: it.seek(TP, HUGE), "an offset of t-0 is at most"),
    (lambda it: it.seek(TP, "5"), "an offset of t-0 must be a number, not str"),
    (lambda it: it.seek(TP, 1.5), "an offset of t-0 must be a number, not float"),
    (lambda it: it.seek(TopicPartition("other", 0), 5), "other-0 is not assigned"),
    (lambda it: it.assign([FAR]), NO_PARTITION),
    (lambda it: it.assign(5), LIST),
    (lambda it: it.subscribe([5]), "topic must be text, not int"),
    (lambda it: it.subscribe(["\udcff"]), "^topic is not text in UTF-8$"),
    (lambda it: it.subscribe(5), "a list of names is needed for topic, not 5"),
    (lambda it: it.poll(max_records="5"), f"max_records {NUMBER} str"),
    (lambda it: it.poll(max_records=0), "max_records has to be from 1"),
    (lambda it: it.commit({TP: HUGE}), "an offset of t-0 is at most"),
    (lambda it: it.commit({ODD: 5}), PAIR),
    (lambda it: it.committed([ODD]), PAIR),
    (lambda it: it.committed(TP), LIST),
    (lambda it: it.offsets_for_times({TP: "now"}), f"a time {NUMBER} str"),
    (lambda it: it.offsets_for_times({TP: HUGE}), "a time has to be from"),
    (lambda it: it.offsets_for_times([TP]), "a mapping of partitions to times is needed, not list"),
    (lambda it: it.beginning_offsets([ODD]), PAIR),
    (lambda it: it.end_offsets([FAR]), NO_PARTITION),
]

SHARE: list[Call] = [
    (lambda it: it.subscribe([5]), "topic must be text, not int"),
    (lambda it: it.poll(max_records="5"), f"max_records {NUMBER} str"),
    (lambda it: it.poll(max_records=HUGE), "max_records has to be from 1"),
]


async def refused(client: Any, calls: list[Call], broker: ScriptedBroker) -> None:
    missed = []
    for number, (call, why) in enumerate(calls):
        try:
            async with asyncio.timeout(WAIT_S):
                found = call(client)
                if asyncio.iscoroutine(found):
                    await found
        except WireError as error:
            missed.append(f"{number} ({why}): WireError {error}")
        except (TypeError, ValueError) as error:
            if re.search(why, str(error)) is None or "\n" in str(error):
                missed.append(f"{number} ({why}): {error!r}")
        except Exception as error:
            missed.append(f"{number} ({why}): {error!r}")
        else:
            missed.append(f"{number} ({why}): it was accepted")
    assert not missed, "\n".join(missed)
    assert {type(each) for _, each in broker.requests} <= {ApiVersionsRequest, MetadataRequest}


def test_of_the_admin() -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            ScriptedPartitions(broker)
            async with Admin(broker.bootstrap) as admin:
                await refused(admin, ADMIN, broker)

    asyncio.run(run())


def test_of_a_consumer() -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            ScriptedPartitions(broker)
            async with Consumer(broker.bootstrap, ConsumerOptions(group_id="g", enable_auto_commit=False)) as consumer:
                consumer.assign([TP])
                await refused(consumer, CONSUMER, broker)
                assert consumer.assignment == [TP]

    asyncio.run(run())


def test_of_a_share_consumer() -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            ScriptedPartitions(broker)
            async with ShareConsumer(broker.bootstrap, ShareOptions("g")) as consumer:
                await refused(consumer, SHARE, broker)

    asyncio.run(run())


@pytest.mark.parametrize("span", [Span("t", 0, HUGE), Span("t", 0, 0, HUGE), Span("t", HUGE)])
def test_of_a_range_reader(span: Span) -> None:
    async def run() -> None:
        with pytest.raises(ValueError, match=r"at most|there is no"):
            RangeReader("127.0.0.1:9", [span])

    asyncio.run(run())


def test_numbers_of_other_libraries_are_accepted() -> None:
    """NumPy's integers are no `int`, but stand for one."""

    class Seven:
        def __index__(self) -> int:
            return 7

    async def run() -> None:
        async with Consumer("127.0.0.1:9") as consumer:
            consumer.assign([TP])
            consumer.seek(TP, Seven())  # type: ignore[arg-type]
            assert consumer.position(TP) == 7

    asyncio.run(run())
