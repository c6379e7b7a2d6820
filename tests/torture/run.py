"""One real node with default settings, under load, killed again and again while its topics change.

Settings are Kafka's defaults, but that segments are small and that the cleaner and retention look often: what takes
hours is to happen within seconds. An idempotent producer of librdkafka writes all the time, over every kill.

- `plain` is never compacted. Its records are deleted up to some offset now and then (DeleteRecords).
- `changing` is compacted, deleted (after a time that never comes), or both, in turn.
- Both get other values of `compression.type`.

Kill -9 loses nothing of what the page cache holds. So after every start all that was acknowledged is there, at its
offset, in order, once; unless it lies below a log start that somebody asked for, or a newer record of its key is in
`changing`.
"""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from tests.support.processes.kafka import SINGLE_NODE
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S, until

HASTY = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.segment.delete.delay.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.1",
}
PARTITIONS = 2
PLAIN, CHANGING = "plain", "changing"
POLICIES = ("compact", "delete", "compact,delete")
CODECS = ("producer", "zstd", "uncompressed", "lz4")
KEYS = 50
WAITING_MAX = 2_000  # records that are not acknowledged yet
SIZES = (0, 20, 200, 3_000)

Place = tuple[str, int]
Written = tuple[int, bytes]
PLACES = tuple((topic, index) for topic in (PLAIN, CHANGING) for index in range(PARTITIONS))


class Writer(threading.Thread):
    """Writes to all partitions until it is told to stop, and remembers what was acknowledged."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._acknowledged: dict[Place, dict[int, Written]] = {place: {} for place in PLACES}
        self._lock = threading.Lock()  # of `_acknowledged`: the torturing thread reads it while this one writes
        self.problems: list[str] = []
        self._rng = random.Random(seed)
        self._ends = threading.Event()
        self._waiting = 0
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "batch.size": 20_000,
                "reconnect.backoff.max.ms": 200,
            }
        )

    def run(self) -> None:
        number = 0
        while not self._ends.is_set():
            for topic, index in PLACES:
                key = b"k%d" % self._rng.randrange(KEYS)
                value = value_of(number, self._rng.choice(SIZES))
                self._waiting += 1
                self._producer.produce(topic, value, key, index, on_delivery=self._done((topic, index), (number, key)))
            number += 1
            self._producer.poll(0.001)
            while self._waiting > WAITING_MAX and not self._ends.is_set():
                self._producer.poll(0.05)
        self._producer.flush(WAIT_S)

    def acknowledged(self, place: Place) -> dict[int, Written]:
        """The (number, key) of each record that was acknowledged so far, by offset."""
        with self._lock:
            return dict(self._acknowledged[place])

    def forget(self, place: Place, start: int) -> None:
        """Forget the records below `start`: they were deleted."""
        with self._lock:
            known = self._acknowledged[place]
            for offset in [each for each in known if each < start]:
                del known[offset]

    def _done(self, place: Place, written: Written) -> Callable[..., None]:
        def done(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            self._waiting -= 1
            offset = message.offset()
            if error is not None or offset is None:
                self.problems.append(f"record {written[0]} was refused: {error}")
            else:
                with self._lock:
                    self._acknowledged[place][offset] = written

        return done

    def stop(self) -> None:
        self._ends.set()
        self.join(2 * WAIT_S)
        assert self._waiting == 0, "all were answered"


def value_of(number: int, size: int) -> bytes:
    return b"%d %s" % (number, (b"%d/" % number) * (size // 4))


class Torture:
    def __init__(self, directory: Path, seed: int, tell: Callable[[str], object] = lambda _: None) -> None:
        self._directory = directory
        self._rng = random.Random(seed)
        self._seed = seed
        self._tell = tell
        self._node = OttlaNode(directory, properties=SINGLE_NODE | HASTY)
        self._asked_start: dict[Place, int] = {}  # below which somebody wanted everything deleted
        self._start: dict[Place, int] = {}  # ... and was told that it is
        self.facts = dict.fromkeys(("kills", "restarts", "deletions", "changes", "acknowledged", "read"), 0)

    def run(self, seconds: float) -> dict[str, int]:
        """What was done, if all of it went well; AssertionError otherwise."""
        self._node.start()
        try:
            self._admin = AdminClient({"bootstrap.servers": self._node.bootstrap})
            small = {"internal.segment.bytes": "60000", "min.cleanable.dirty.ratio": "0.1"}
            made = self._admin.create_topics(
                [NewTopic(name, PARTITIONS, 1, config=small) for name in (PLAIN, CHANGING)]
            )
            for future in made.values():
                future.result(WAIT_S)
            writer = Writer(self._node.bootstrap, self._seed)
            writer.start()
            end_s = time.monotonic() + seconds
            while time.monotonic() < end_s or not self.facts["kills"]:
                for _ in range(self._rng.randint(1, 3)):
                    time.sleep(self._rng.uniform(0.05, 0.5))
                    self._rng.choice((self._change_policy, self._change_codec, self._delete_records))(writer)
                time.sleep(self._rng.uniform(0.0, 0.5))
                self._crash()
                self._check(writer)
            writer.stop()
            self._crash()
            self._check(writer)
        finally:
            self._node.kill()
        shutil.rmtree(self._directory)
        return self.facts

    # --- what is done to it

    def _crash(self) -> None:
        if self._rng.random() < 0.8:
            self.facts["kills"] += 1
            self._node.kill()
        else:
            self.facts["restarts"] += 1
            self._node.stop()
        self._node.start()

    def _change_policy(self, _: Writer) -> None:
        self._set(CHANGING, "cleanup.policy", self._rng.choice(POLICIES))

    def _change_codec(self, _: Writer) -> None:
        self._set(self._rng.choice((PLAIN, CHANGING)), "compression.type", self._rng.choice(CODECS))

    def _set(self, topic: str, name: str, value: str) -> None:
        self._tell(f"{topic}: {name}={value}")
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
        self.facts["changes"] += 1

    def _delete_records(self, writer: Writer) -> None:
        place = PLAIN, self._rng.randrange(PARTITIONS)
        known = sorted(writer.acknowledged(place))
        if not known:
            return
        offset = known[int(len(known) * self._rng.uniform(0.0, 0.9))]
        self._tell(f"{place}: deleted below {offset}")
        self._asked_start[place] = max(offset, self._asked_start.get(place, 0))
        wanted = confluent_kafka.TopicPartition(*place, offset)
        if self._rng.random() < 0.3:
            self._admin.delete_records([wanted])  # and the node is killed before it answers, or after
            return
        for future in self._admin.delete_records([wanted]).values():
            future.result(WAIT_S)
        self._start[place] = max(offset, self._start.get(place, 0))
        self.facts["deletions"] += 1

    # --- what must hold

    def _check(self, writer: Writer) -> None:
        """What was acknowledged before the last kill, at least."""
        assert not writer.problems, writer.problems[0]
        acknowledged = 0
        for place in PLACES:
            if told := writer.acknowledged(place):
                self._look(place, told)
                writer.forget(place, self._start.get(place, 0))
            acknowledged += len(told)
        self.facts["acknowledged"] = acknowledged
        self._tell(f"{self.facts}")

    def _look(self, place: Place, told: dict[int, Written]) -> None:
        there = read(self._node.bootstrap, place, max(told) + 1)
        self.facts["read"] += len(there)
        numbers = [number for number, _ in there.values()]
        assert numbers == sorted(set(numbers)), f"{place}: out of order, or twice"
        assert min(there, default=0) >= self._start.get(place, 0), f"{place}: what was deleted is back"
        for offset, written in told.items():
            assert there.get(offset, written) == written, f"{place}: another record is at {offset}"
        asked = self._asked_start.get(place, 0)
        lost = [offset for offset in told if offset >= asked and offset not in there]
        if place[0] == PLAIN:
            assert not lost, f"{place}: {len(lost)} acknowledged records are lost, the first at {min(lost)}"
            return
        newest = {key: offset for offset, (_, key) in there.items()}
        for offset in lost:
            assert newest.get(told[offset][1], -1) > offset, f"{place}: {offset} is lost, and nothing replaced it"


def read(bootstrap: str, place: Place, end: int) -> dict[int, Written]:
    """(number, key) of everything that is there, by offset; at least up to below `end`."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "torture",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "check.crcs": True,
        }
    )
    try:
        where = confluent_kafka.TopicPartition(*place, confluent_kafka.OFFSET_BEGINNING)
        _, high = consumer.get_watermark_offsets(where, timeout=WAIT_S)
        assert high >= end, f"{place} ends at {high}, and {end - 1} was acknowledged"
        consumer.assign([where])
        found: dict[int, Written] = {}
        last = -1
        while last < high - 1:  # the end of a log is not compacted
            for message in until(lambda: consumer.consume(5_000, 0.2)):
                assert message.error() is None, message.error()
                offset, (number, _, padding) = message.offset(), (message.value() or b"").partition(b" ")
                assert offset is not None and offset > last, "in order"
                last = offset
                assert not padding.replace(number + b"/", b""), "content as it was sent"
                found[offset] = int(number), message.key() or b""
        return found
    finally:
        consumer.close()
