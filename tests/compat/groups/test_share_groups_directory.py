"""A stopped Kafka's share groups live on in Ottla, and what Ottla wrote a Kafka goes on with."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.same import Plain, Side
from tests.support.requests.share_state import StateTalk
from tests.support.requests.shares import LEAVE, ShareTalk
from tests.support.waiting import until


@pytest.fixture
def kafka(java_tools: None, tmp_path: Path) -> Iterator[RealKafka]:
    """A Kafka of this test's own, to be stopped and started."""
    found = RealKafka(tmp_path / "kafka")
    try:
        yield found
    finally:
        found.kill()


def known(side: Side, group: ShareTalk, state: StateTalk) -> Plain:
    """All that can be asked of the group and of the state of one of its partitions."""
    group.side = state.side = side
    until(group.describe, lambda found: found["groups"][0]["error_code"] == 0)
    ready = until(lambda: state.read(0, -1), lambda found: found["results"][0]["partitions"][0]["error_code"] == 0)
    return [group.describe(), group.offsets(), ready, state.summary(0), state.summary(1)]


@pytest.mark.slow
def test_there_and_back(kafka: RealKafka) -> None:
    kafka.start()
    side = Side("kafka", kafka.bootstrap)
    state = StateTalk(side, "shop", "orders")
    group = ShareTalk(side, "shop")
    epoch = group.join("anna", "orders")["member_epoch"]
    state.read(0, 2)
    state.write(0, (5, 9, 2, 1), (10, 12, 0, 3), start=5, done=5, leader_epoch=2, epoch=9)
    before = known(side, group, state)
    side.close()
    kafka.stop()

    ottla = OttlaNode.in_place_of(kafka)
    try:
        ottla.start()
        side = Side("ottla", ottla.bootstrap)
        side.ids = {"orders": state.id}
        assert known(side, group, state) == before
        # The hash of the group's topics is the same here, so nothing has changed for the member.
        assert group.beat("anna", epoch)["member_epoch"] == epoch
        assert state.read(0, 1)["results"][0]["partitions"][0]["error_code"] == 74  # FENCED_LEADER_EPOCH
        state.write(0, (10, 12, 2, 4), done=8, leader_epoch=2, epoch=9)
        group.beat("anna", LEAVE)
        group.alter({"orders": {1: 70}})
        before = known(side, group, state)
        side.close()
    finally:
        ottla.stop()

    kafka.start()
    side = Side("kafka", kafka.bootstrap)
    side.ids = {"orders": state.id}
    assert known(side, group, state) == before
    side.close()
