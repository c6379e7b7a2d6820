"""Kafka Streams, exactly once, over a crash: a word count and a join, with both group protocols."""

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java, Message
from tests.support.clients.members import until
from tests.support.java.apps import App
from tests.support.java.programs import CLASSPATH_STREAMS

PROTOCOLS = ("classic", "streams")
PARTITIONS = 2
HALF = 150
STARTED = int(time.time() * 1000) - 3_600_000  # the records' own time; recent, so that retention leaves them


class Application:
    """One Streams application, its five topics, and what its tables must be."""

    def __init__(self, name: str, protocol: str, bootstrap: str, java: Java, directory: Path) -> None:
        self._name, self._bootstrap, self._java = name, bootstrap, java
        words = (bootstrap, name, str(directory / f"state-{protocol}"), protocol)
        self.app = App(directory / f"{protocol}.log", "ottla.StreamsApp", *words, classpath=CLASSPATH_STREAMS)
        for part in ("lines", "users", "orders", "counts", "joined"):
            java.ask("create_topic", bootstrap, topic=f"{name}-{part}", partitions=PARTITIONS)
        self._send("users", [(f"user-{at}", f"name-{at}") for at in range(10)], STARTED)

    def feed(self, numbers: range) -> None:
        self._send("lines", [(str(at), f"all odd-{at % 2} seventh-{at % 7}") for at in numbers], STARTED + 1000)
        self._send("orders", [(f"user-{at % 10}", f"order-{at}") for at in numbers], STARTED + 1000)

    def counts(self) -> dict[str, list[int]]:
        """Each word's counts in the order in which they were written."""
        found: dict[str, list[int]] = defaultdict(list)
        for each in self._java.drain(self._bootstrap, f"{self._name}-counts"):
            found[str(each.key)].append(int(str(each.value)))
        return found

    def joined(self) -> list[str | None]:
        return [each.value for each in self._java.drain(self._bootstrap, f"{self._name}-joined")]

    def _send(self, part: str, records: list[tuple[str, str]], timestamp: int) -> None:
        """Both sides of the join put a key into the same partition."""
        for partition in range(PARTITIONS):
            own = [
                Message(value.encode(), key.encode(), timestamp=timestamp)
                for key, value in records
                if int(key.split("-")[-1]) % PARTITIONS == partition
            ]
            self._java.produce(self._bootstrap, f"{self._name}-{part}", partition, own)


@pytest.fixture
def applications(brisk_node: Node, java_431: Java, new_name: Names, tmp_path: Path) -> Iterator[list[Application]]:
    """One per protocol, side by side: most of the time goes into waiting for sessions and transactions to end."""
    made = [
        Application(new_name(f"app-{protocol}"), protocol, brisk_node.bootstrap, java_431, tmp_path)
        for protocol in PROTOCOLS
    ]
    yield made
    for each in made:
        each.app.kill()


@pytest.mark.tool("Kafka Streams 4.3.1")
@pytest.mark.feature("word count and join, exactly_once_v2, over kill -9")
def test_tables_are_right_after_a_crash(applications: list[Application]) -> None:
    for each in applications:
        each.feed(range(HALF))
        each.app.start()
    for each in applications:
        until(lambda each=each: len(each.counts()["all"]) > HALF // 10, each.app.said)
        each.app.kill()
        each.feed(range(HALF, 2 * HALF))
    for each in applications:
        each.app.start()
    for each in applications:
        until(lambda each=each: len(each.counts()["all"]) >= 2 * HALF, each.app.said)
        until(lambda each=each: len(each.joined()) >= 2 * HALF, each.app.said)
        words = [word for at in range(2 * HALF) for word in ("all", f"odd-{at % 2}", f"seventh-{at % 7}")]
        assert each.counts() == {word: list(range(1, words.count(word) + 1)) for word in words}
        wanted = [f"order-{at} for name-{at % 10}" for at in range(2 * HALF)]
        assert sorted(map(str, each.joined())) == sorted(wanted)
