"""A consumer group moves with the data directory from a real Kafka to Ottla and back, in the middle of a rebalance: the
records of either are what the other goes on from, and nobody notices."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.beats import Flock
from tests.support.requests.same import Plain, Side
from tests.support.waiting import until


@pytest.fixture
def kafka(java_tools: None, tmp_path: Path) -> Iterator[RealKafka]:
    found = RealKafka(tmp_path / "kafka")
    try:
        yield found
    finally:
        found.kill()


def told(answer: Plain) -> tuple[int, int, list[int] | None]:
    """Error, epoch and partitions of the one topic."""
    given = answer["assignment"]
    owned = given and [each for topic in given["topic_partitions"] for each in topic["partitions"]]
    return answer["error_code"], answer["member_epoch"], owned


@pytest.mark.slow
@pytest.mark.tool("data directory of Kafka 4.3.1")
@pytest.mark.feature("consumer groups taken over and given back")
def test_a_rebalance_goes_on_elsewhere(kafka: RealKafka) -> None:
    kafka.start()
    side = Side("kafka", kafka.bootstrap)
    side.create("moved", 4)
    flock = Flock(side, "movers")
    anna, bert = flock.bird("anna", ["moved"]), flock.bird("bert", ["moved"], instance_id="b")
    dora = flock.bird("dora", None, subscribed_topic_regex="mo.*d")
    assert told(anna.join()) == (0, 2, [0, 1, 2, 3])
    assert told(bert.join()) == (0, 3, [])
    assert told(anna.beat()) == (0, 2, [0, 1])
    side.close()
    kafka.stop()

    node = OttlaNode.in_place_of(kafka).start()
    try:
        flock.side = Side("ottla", node.bootstrap)
        assert told(bert.beat()) == (0, 3, None)  # anna has not confirmed
        assert told(anna.confirm()) == (0, 3, None)
        assert told(bert.beat()) == (0, 3, [2, 3])
        dora.join()
        flock.wait_for_epoch(4)
        assert told(dora.confirm())[:2] == (0, 4)
        assert told(anna.beat()) == (0, 4, None)
        before = flock.described()
        flock.side.close()
    finally:
        node.stop()

    kafka.start()
    flock.side = side = Side("kafka", kafka.bootstrap)
    answer = until(anna.beat, lambda found: found["error_code"] not in (14, 15, 16))  # Kafka is still loading
    assert told(answer) == (0, 4, None)
    assert flock.described() == before
    assert told(bert.beat()) == (0, 3, [2])
    assert told(bert.confirm()) == (0, 4, None)
    assert told(dora.beat()) == (0, 4, [3])
    side.close()
