"""Consume, transform, produce, while client and broker are killed at random moments: each input once in the output."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compat.conftest import Node
from tests.support.clients.assigned import Drained, Java, Message
from tests.support.clients.members import until
from tests.support.java.apps import App

PARTITIONS = 2
ROUNDS = {"classic": 6, "consumer": 4}  # a killed member of the newer protocol is waited for, so fewer
PER_ROUND = 150


@pytest.fixture
def copier(mortal: Node, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[App]:
    words = (mortal.bootstrap, f"in-{request.param}", f"out-{request.param}", f"copiers-{request.param}", request.param)
    app = App(tmp_path / "copier.log", "ottla.Copier", *words)
    yield app
    app.kill()


@pytest.mark.tool("consume-transform-produce, java 4.3.1")
@pytest.mark.feature("exactly once over kill -9 of client and broker")
@pytest.mark.parametrize(
    ("copier", "protocol"), [("classic", "classic"), ("consumer", "consumer")], indirect=["copier"]
)
def test_each_input_once(copier: App, protocol: str, mortal: Node, java_431: Java) -> None:
    rounds = ROUNDS[protocol]
    rng = random.Random(f"exactly once {protocol}")
    source, target = f"in-{protocol}", f"out-{protocol}"
    for topic in (source, target):
        java_431.ask("create_topic", mortal.bootstrap, topic=topic, partitions=PARTITIONS)
    copier.start()
    for at in range(rounds):
        # Counted before there is anything new to copy: a quick copier is done with it before anybody has counted.
        before = len(java_431.drain(mortal.bootstrap, target))
        for partition in range(PARTITIONS):
            sent = [Message(b"%d" % number) for number in numbers(partition, at)]
            java_431.produce(mortal.bootstrap, source, partition, sent)
        until(lambda before=before: copying(copier, java_431, mortal, target) > before, copier.said)
        time.sleep(rng.uniform(0, 0.3))
        for victim in (copier, mortal) if at == rounds - 1 else (rng.choice((copier, mortal)),):
            victim.kill()
            victim.start()
    total = rounds * PER_ROUND
    until(lambda: copying(copier, java_431, mortal, target) >= total, copier.said)
    copies = java_431.drain(mortal.bootstrap, target)
    for partition in range(PARTITIONS):
        wanted = [f"copy of {number}" for at in range(rounds) for number in numbers(partition, at)]
        assert [each.value for each in copies if each.partition == partition] == wanted
    committed = java_431.ask("committed", mortal.bootstrap, group=f"copiers-{protocol}")
    assert committed == {f"{source}-{partition}": total // PARTITIONS for partition in range(PARTITIONS)}


def numbers(partition: int, at: int) -> range:
    """What a round puts into a partition."""
    start = at * PER_ROUND
    return range(start + partition, start + PER_ROUND, PARTITIONS)


def copying(copier: App, java: Java, node: Node, target: str) -> int:
    """How much is copied; a copier that gave up (it does so when it lost its transaction) is started again."""
    if copier.ended():
        copier.kill()
        copier.start()
    copies: list[Drained] = java.drain(node.bootstrap, target)
    return len(copies)
