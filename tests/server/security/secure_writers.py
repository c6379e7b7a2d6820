"""Writers of librdkafka that go on whatever happens to the nodes, and note what was acknowledged or committed."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.support.waiting import WAIT_S, until

PARTITIONS = 3
BURST = 10
PACE_S = 0.02


class Writers:
    """One idempotent producer with acks=all, and one with transactions, each in a thread and on a topic of its own."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings) | {"acks": "all", "linger.ms": "2"}
        self.acknowledged: list[int] = []
        self.committed: list[int] = []
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write), threading.Thread(target=self._transact)]

    def __enter__(self) -> Writers:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        for each in self._threads:
            each.join()

    def go_on(self) -> None:
        """Wait until both have written some more."""
        acknowledged, committed = len(self.acknowledged), len(self.committed)
        until(
            lambda: (self.problems, len(self.acknowledged), len(self.committed)),
            lambda now: now[0] or (now[1] > acknowledged + 2 * BURST and now[2] > committed + 2 * BURST),
        )
        assert not self.problems

    def _write(self) -> None:
        producer = Producer(self._settings | {"enable.idempotence": "true"})

        def delivered(error: object, message: Any) -> None:
            if error is not None:
                self.problems.append(f"a record was not written: {error}")
            else:
                self.acknowledged.append(int(message.value()))

        number = 0
        while not self._stop.is_set():
            for _ in range(BURST):
                number += 1
                producer.produce("records", b"%d" % number, partition=number % PARTITIONS, on_delivery=delivered)
            producer.poll(PACE_S)
        if producer.flush(WAIT_S):
            self.problems.append("records are still unanswered")

    def _transact(self) -> None:
        try:
            producer = Producer(self._settings | {"transactional.id": "t", "transaction.timeout.ms": "30000"})
            producer.init_transactions(WAIT_S)
            number = 0
            while not self._stop.is_set():
                numbers = range(number + 1, number + 1 + BURST)
                number += BURST
                if self._transaction(producer, numbers):
                    self.committed += numbers
                self._stop.wait(PACE_S)
        except Exception as error:
            self.problems.append(f"transactions ended: {error!r}")

    def _transaction(self, producer: Producer, numbers: range) -> bool:
        """Write the numbers in one transaction and return whether it is committed; every tenth is aborted."""
        producer.begin_transaction()
        for number in numbers:
            producer.produce("transactions", b"%d" % number, partition=number % PARTITIONS)
        try:
            if numbers.start // BURST % 10:
                commit(producer)
                return True
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        producer.abort_transaction(WAIT_S)
        return False


def by_partition(numbers: Sequence[int]) -> dict[int, list[int]]:
    """Where the numbers are, in which order, if each is there once."""
    return {index: sorted(each for each in numbers if each % PARTITIONS == index) for index in range(PARTITIONS)}


def commit(producer: Producer) -> None:
    while True:
        try:
            producer.commit_transaction(WAIT_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def read(settings: Mapping[str, str], topic: str, count: int) -> dict[int, list[int]]:
    """The committed numbers in each partition, in their order, once there are `count` and the ends are reached."""
    own = {"group.id": "readers", "enable.partition.eof": "true", "auto.offset.reset": "earliest"}
    consumer = Consumer(dict(settings) | own | {"isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
    ended: set[int] = set()

    def progress() -> bool:
        for message in consumer.consume(1_000, timeout=0.2):
            if message.error() is None:
                found[message.partition()].append(int(message.value()))
                ended.discard(message.partition())
            else:  # the end of a partition
                ended.add(message.partition())
        return len(ended) == PARTITIONS and sum(map(len, found.values())) >= count

    try:
        until(progress)
    finally:
        consumer.close()
    return found
