"""A stopped Kafka's streams groups live on in Ottla, and what Ottla wrote a Kafka goes on with."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.same import Plain, Side
from tests.support.requests.streamers import Player, Troupe, internal, subtopology, topology
from tests.support.waiting import until

INPUT, STATE = "lines", "app-state"


@pytest.fixture
def kafka(java_tools: None, tmp_path: Path) -> Iterator[RealKafka]:
    """A Kafka of this test's own, to be stopped and started."""
    found = RealKafka(tmp_path / "kafka")
    try:
        yield found
    finally:
        found.kill()


def known(side: Side, troupe: Troupe) -> Plain:
    """The group, apart from the partitions of internal topics: Kafka tells those after the next heartbeat."""
    troupe.side = side
    found = until(troupe.described, lambda answer: answer["groups"][0]["error_code"] == 0)["groups"][0]
    return {**found, "topology": ""}


def settled(*players: Player) -> list[Plain]:
    """What they are told when all have moved to where they shall be."""
    return [player.confirm() for _ in range(4) for player in players][-len(players) :]


@pytest.mark.slow
def test_there_and_back(kafka: RealKafka) -> None:
    kafka.start()
    side = Side("kafka", kafka.bootstrap)
    side.create(INPUT, 4)
    side.create(STATE, 4)
    play = topology(subtopology("0", INPUT, state_changelog_topics=[internal(STATE)]))
    troupe = Troupe(side, "app", **{"streams.num.standby.replicas": "1"})
    anna, bert, carl = (troupe.player(name, play) for name in "abc")
    anna.join()
    bert.join()
    settled(anna, bert)
    before = known(side, troupe)
    side.close()
    kafka.stop()

    ottla = OttlaNode.in_place_of(kafka)
    try:
        ottla.start()
        side = Side("ottla", ottla.bootstrap)
        assert known(side, troupe) == before
        # Topology, hash of the topics and settings are the same here, so nothing has changed for the members.
        for player, epoch in ((anna, anna.epoch), (bert, bert.epoch)):
            answer = player.confirm()
            assert (answer["member_epoch"], answer["active_tasks"], answer["status"]) == (epoch, None, [])
        assert known(side, troupe) == before
        carl.join()
        settled(anna, bert, carl)
        before = known(side, troupe)
        assert before["group_state"] == "Stable"
        side.close()
    finally:
        ottla.stop()

    kafka.start()
    side = Side("kafka", kafka.bootstrap)
    assert known(side, troupe) == before
    for player, epoch in ((anna, anna.epoch), (bert, bert.epoch), (carl, carl.epoch)):
        answer = player.confirm()
        assert (answer["member_epoch"], answer["active_tasks"], answer["status"]) == (epoch, None, [])
    assert known(side, troupe) == before
    side.close()
