"""What goes on in a cluster while faults come: a writer, a group that reads, and somebody who looks at dashboards."""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Thread

from tests.support.processes.prometheus import Prometheus
from tests.support.waiting import until

from ottla import Blocking, ConsumerOptions, ProducerOptions
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError

TOPIC, GROUP = "load", "load"
_PAUSE_S = 0.02
_TROUBLES = (ApiError, ClientError, OSError, TimeoutError)


class Load:
    """A writer that notes what was acknowledged, and a member of a group that notes what it read. Both start anew after
    an error, as long as they are wanted.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.acknowledged: set[bytes] = set()
        self.read: set[bytes] = set()
        self._enough, self._done = Event(), Event()
        self._writing = Thread(target=self._again, args=(self._write, self._enough))
        self._reading = Thread(target=self._again, args=(self._read, self._done))

    def __enter__(self) -> Load:
        self._writing.start()
        self._reading.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._done.set()
        self._writing.join()
        self._reading.join()

    def all_read(self) -> None:
        """Write no more, and wait until the group has read what was acknowledged."""
        self._enough.set()
        self._writing.join()
        until(lambda: self.acknowledged - self.read, lambda unread: not unread)

    @staticmethod
    def _again(work: Callable[[], None], enough: Event) -> None:
        while not enough.is_set():
            with suppress(*_TROUBLES):
                work()
            enough.wait(_PAUSE_S)

    def _write(self) -> None:
        options = ProducerOptions(delivery_timeout_ms=3_000, request_timeout_ms=1_000, max_block_ms=3_000)
        with Blocking(self._bootstrap, options) as client:
            while not self._enough.is_set():
                value = str(time.monotonic_ns()).encode()
                client.send(TOPIC, value)
                self.acknowledged.add(value)
                self._enough.wait(_PAUSE_S)

    def _read(self) -> None:
        with (
            Blocking(self._bootstrap) as client,
            client.consumer(ConsumerOptions(GROUP, auto_offset_reset="earliest")) as consumer,
        ):
            consumer.subscribe([TOPIC])
            while not self._done.is_set():
                for records in consumer.poll(timeout_ms=200).values():
                    self.read |= {record.value for record in records if record.value is not None}


class Panels:
    """Asks a Prometheus queries by their titles again and again; which were answered, and which were refused."""

    def __init__(self, prometheus: Prometheus, queries: Mapping[str, str]) -> None:
        self._prometheus = prometheus
        self._queries = queries
        self.answered: set[str] = set()
        self.refused: dict[str, str] = {}
        self.rounds = 0
        self._enough = Event()
        self._asking = Thread(target=self._ask)

    def __enter__(self) -> Panels:
        self._asking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._asking.join()

    @property
    def unanswered(self) -> set[str]:
        return set(self._queries) - self.answered

    def _ask(self) -> None:
        while not self._enough.wait(0.2):
            for title, query in self._queries.items():
                try:
                    found = self._prometheus.series(query)
                except urllib.error.HTTPError as error:  # many series where one is expected, for instance
                    with error:
                        self.refused[title] = error.read().decode()
                else:
                    if found:
                        self.answered.add(title)
            self.rounds += 1
