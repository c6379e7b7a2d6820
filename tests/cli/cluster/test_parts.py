"""Parts of `ottla cluster` without a cluster: views, plans, texts, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.conftest import Run, invoke

from ottla.client.address import Address
from ottla.client.admin.nodes import LogDir, ReplicaSize
from ottla.client.admin.replicas import Reassignment
from ottla.client.admin.voters import QuorumReplica, QuorumState, VoterEndpoint
from ottla.client.errors import NotConnected
from ottla.client.metadata import AdvertisedBroker
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.plan import plan_for, plan_json, under_way, unfinished
from ottla.operations.cluster.reassignment import plan, targets
from ottla.operations.cluster.view import BrokerView, ClusterView, PartitionView, _broker, status_json
from ottla.operations.cluster.voters import look_around
from ottla.operations.errors import CommandError
from ottla.operations.formats import parse_rate

QUORUM = QuorumState(1, 4, 100, (), (), {})


def view(*partitions: PartitionView, fenced: int | None = None, brokers: int = 3) -> ClusterView:
    found = [
        BrokerView(AdvertisedBroker(each, "h", 9092 + each, None, each == fenced), 0, 0, 0, None, None)
        for each in range(1, brokers + 1)
    ]
    return ClusterView("id", QUORUM, tuple(found), partitions)


def partition(
    index: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...], move: Reassignment | None = None
) -> PartitionView:
    return PartitionView(TopicPartition("t", index), leader, replicas, isr, 2, 100, move)


def test_a_directory_that_failed_is_a_problem_and_its_size_is_not_known() -> None:
    """As brokers answer for a disk that failed, or is full: an error, no replicas, no sizes."""
    failed = LogDir(1, "/full", ErrorCode.KAFKA_STORAGE_ERROR, (), -1, -1)
    works = LogDir(1, "/works", ErrorCode.NONE, (ReplicaSize("t", 0, 7, 0, False),), 100, 50)
    broker = AdvertisedBroker(1, "h", 9093, None, False)
    alone, beside = (_broker(broker, [], {1: dirs}) for dirs in ([failed], [failed, works]))
    assert (alone.size_bytes, alone.free_bytes) == (None, None)
    assert (beside.size_bytes, beside.free_bytes) == (7, 50)
    for each in (alone, beside):
        found = ClusterView("id", QUORUM, (each,), ())
        assert found.problems() == {"failed_directories": ["/full of broker 1"]}
        assert status_json(found)["healthy"] is False


# --- a quorum whose leader is not known to whoever was asked


class Controllers:
    """Stands for an admin client: what each controller says of the quorum, by its port; None: no answer."""

    def __init__(self, says: dict[int, QuorumState | None]) -> None:
        self.says = says
        self.voters = self
        self.cluster = SimpleNamespace(options=SimpleNamespace(bootstrap=(Address("h", 1),)))

    async def as_seen_by(self, controller: Address) -> QuorumState:
        found = self.says.get(controller.port)
        if found is None:
            raise NotConnected("nobody")
        return found


SEATS = {each: (VoterEndpoint("CONTROLLER", "h", each),) for each in (1, 2, 3)}
FOLLOWING = QuorumState(-1, 4, 100, (), (), SEATS)
DOUBTFUL = QuorumState(-1, 4, 0, (), (), SEATS, in_doubt=True)
LEADING = QuorumState(3, 4, 100, (QuorumReplica(3, bytes(16), 100, 0, 0),), (), SEATS)


def test_another_controller_may_know_the_leader() -> None:
    admin: Any = Controllers({1: FOLLOWING, 2: None, 3: LEADING})
    assert asyncio.run(look_around(admin)) is LEADING


@pytest.mark.parametrize(
    ("says", "told", "hint"),
    [
        ({1: FOLLOWING, 2: DOUBTFUL, 3: None}, "no answer from voter 3; voter 2 in doubt", "docs/quorum.md"),
        ({1: FOLLOWING, 2: None, 3: None}, "no answer from voter 2, 3", "start the nodes that are down"),
        ({1: DOUBTFUL, 2: DOUBTFUL, 3: DOUBTFUL}, "voter 1, 2, 3 in doubt", "docs/quorum.md"),
        ({1: None, 2: FOLLOWING, 3: FOLLOWING}, "do not answer, or are in doubt", "the address of a controller"),
    ],
)
def test_why_nobody_leads(says: dict[int, QuorumState | None], told: str, hint: str) -> None:
    admin: Any = Controllers(says)
    with pytest.raises(CommandError) as caught:
        asyncio.run(look_around(admin))
    assert told in str(caught.value) and hint in (caught.value.hint or "")


# --- texts


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1000", 1000), ("50MiB", 50 << 20), ("1.5 GB", 1_500_000_000), ("2k", 2000), ("3mib/s", 3 << 20)],
)
def test_rates(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    ("text", "told"),
    [("{}", "'partitions' is missing"), ("no", "it is not JSON"), ("[]", "is no reassignment"), ("1", "reassignment")],
)
def test_a_file_that_is_no_reassignment(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "moves.json").write_text(text)
    with pytest.raises(CommandError, match=told) as caught:
        targets([], tmp_path / "moves.json")
    assert "Error" not in str(caught.value) and '"replicas"' in (caught.value.hint or "")


def test_what_makes_no_sense() -> None:
    with pytest.raises(CommandError, match="is no rate"):
        parse_rate("fast")
    for text in ("t:0", "t=1", ":0=1", "t:0=a", "t:x=1"):
        with pytest.raises(CommandError, match="is not TOPIC:PARTITION"):
            targets([text], None)
    with pytest.raises(CommandError, match="say what is to move"):
        targets([], None)
    for arguments in (["elect", "t"], ["elect", "--unclean"], ["balance", "--capacity", "1=0"]):
        assert invoke("cluster", *arguments, "-b", "127.0.0.1:1").code == 2


def test_a_file_of_moves(tmp_path: Path) -> None:
    file = tmp_path / "moves.json"
    file.write_text('{"partitions": [{"topic": "a:b", "partition": 1, "replicas": [2, 3]}]}')
    assert targets(["t:0=1"], file) == {TopicPartition("a:b", 1): (2, 3), TopicPartition("t", 0): (1,)}
    file.write_text('{"partitions": [{"topic": "t"}]}')
    with pytest.raises(CommandError, match="is no reassignment"):
        targets([], file)


# --- what is wrong, and what is to be done


def test_what_is_wrong_with_partitions() -> None:
    moving = Reassignment(TopicPartition("t", 4), (1, 2, 3), (3,), (1,))
    found = view(
        partition(0, 1, (1, 2), (1, 2)),
        partition(1, 1, (1, 2, 3), (1, 2)),
        partition(2, 1, (1, 2, 3), (1,)),
        partition(3, -1, (3,), (3,)),
        partition(4, 1, (1, 2, 3), (1, 2), moving),
        fenced=3,
    )
    assert found.problems() == {
        "offline": ["t-3"],
        "under_min_isr": ["t-2", "t-3"],
        "under_replicated": ["t-1", "t-2"],
        "fenced_brokers": ["3"],
    }
    assert status_json(found)["moving"] == ["t-4"] and not status_json(found)["healthy"]


def test_a_plan_goes_on_with_what_is_under_way() -> None:
    moving = Reassignment(TopicPartition("t", 0), (1, 2), (2,), (1,))
    found = view(partition(0, 1, (1, 2), (1, 2), moving), partition(1, 1, (1,), (1,)), brokers=2)
    assert plan_for(found).moves == ()  # when it has ended, each broker has one
    (begun,) = under_way(found)
    assert (begun.before, begun.after, begun.adding) == ((1,), (2,), (2,))
    assert plan_json(plan_for(found, draining=[1]))["partitions"] == [
        {"topic": "t", "partition": 1, "replicas": [2]},
    ]


def test_what_nobody_can_copy_does_not_move() -> None:
    found = view(partition(0, -1, (3,), (3,)), partition(1, 1, (1, 3), (1,)), fenced=3)
    made = plan_for(found, draining=[3])
    assert [each.at.partition for each in made.moves] == [1]
    assert made.problems == ("t-0 cannot move: none of its in-sync replicas is there to copy it from",)


def test_elections_that_are_due() -> None:
    found = view(partition(0, 2, (1, 2), (1, 2)), partition(1, 1, (2, 1), (1, 2)), fenced=2, brokers=2)
    (move,) = unfinished(found, plan_for(found))
    assert (move.at.partition, move.before, move.after, move.adding) == (0, (1, 2), (1, 2), ())


def test_moves_by_hand_are_planned() -> None:
    found = view(partition(0, 1, (1, 2), (1, 2)), partition(1, 2, (2, 1), (1, 2)))
    made = plan(found, {TopicPartition("t", 0): (3, 2), TopicPartition("t", 1): (2, 1)})
    assert [(each.at.partition, each.adding, each.copied_bytes) for each in made.moves] == [(0, (3,), 100)]
    assert made.after[3] == (1, 1, 100, 0.0) and made.after[1].replicas == 1


def test_a_single_node_is_a_cluster_too(ottla: Callable[..., Run]) -> None:
    ottla("topic", "create", "alone", "--partitions", "2")
    status = ottla("cluster", "status", "--json").json
    (broker,) = status["brokers"]
    assert status["healthy"] and status["controller"] == broker["id"] and broker["replicas"] >= 2
    assert [each["role"] for each in ottla("cluster", "quorum", "--json").json] == ["leader"]
    assert "Nothing to move" in ottla("cluster", "balance").err
    drained = ottla("cluster", "drain", str(broker["id"]), code=1)
    assert drained.err.splitlines()[0] == "error: not everything can be moved: no broker may take anything"
    assert "add a broker first" in drained.err and not drained.out
    levels = ottla("cluster", "features").lines
    assert any(line.startswith("metadata.version") for line in levels)
