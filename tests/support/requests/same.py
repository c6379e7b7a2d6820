"""Send the same requests to a real Kafka and to Ottla, and compare the responses.

A script is a generator that takes a `Side` and yields answers; it runs once on each side and must yield the same.
Answers become plain data in which values that may differ between two clusters (addresses, ids, free space, the present
time) are replaced.
"""

import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S, until

from ottla.model.ids import NO_ID
from ottla.wire.message import Request, Response, Struct, fields
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse

Plain = Any
Script = Callable[["Side"], Iterator[Plain]]

# Fields whose values depend on the cluster. A value with a meaning in the protocol (-1, 0, "") is kept.
OF_THE_CLUSTER = {
    "host": "HOST",
    "port": "PORT",
    "cluster_id": "CLUSTER",
    "log_dir": "DIRECTORY",
    "total_bytes": "BYTES",
    "usable_bytes": "BYTES",
    "replica_directory_id": "ID",
    "session_id": "SESSION",
    "finalized_features_epoch": "EPOCH",
    "last_fetch_timestamp": "TIME",
    "last_caught_up_timestamp": "TIME",
    "last_timestamp": "TIME",
    "log_append_time_ms": "TIME",
}
MEANINGFUL = (-1, 0, "", NO_ID, None)
# Brokers close connections that nobody used for ten minutes, and tests of other files may take longer.
_IDLE_MAX_S = 60.0


class Side:
    """One broker, with a bare connection and the ids of its topics."""

    def __init__(self, name: str, bootstrap: str, *, source: str | None = None) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self._source = source  # the address of this end
        self.ids: dict[str, bytes] = {}
        self._barriers = 0
        self._connect()

    def _connect(self) -> None:
        self._connection = RawConnection(self.bootstrap, timeout_s=WAIT_S, source=self._source)
        self._used_s = time.monotonic()

    def call(self, request: Request, version: int, *, blank: tuple[str, ...] = ()) -> Plain:
        """The response as plain data; `blank` names further fields whose values are not compared."""
        try:
            return self.plain(self.answer(request, version), version, blank)
        except Closed:
            return "closed the connection"
        except TimeoutError:
            return "no answer"

    def answer(self, request: Request, version: int) -> Response:
        if time.monotonic() - self._used_s > _IDLE_MAX_S:
            self._connection.close()
            self._connect()
        try:
            return self._connection.call(request, version)
        except (Closed, TimeoutError):
            self._connection.close()
            self._connect()
            raise
        finally:
            self._used_s = time.monotonic()

    def create(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic for the script and wait until it is ready; its id."""
        topic = CreateTopicsRequest.CreatableTopic
        config = topic.CreatableTopicConfig
        wanted = topic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=[config(name=key, value=value) for key, value in configs.items()],
        )
        answer = self.answer(CreateTopicsRequest(topics=[wanted]), 7)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer
        self.ids[name] = answer.topics[0].topic_id
        self.wait_for_leaders(name, partitions)
        return answer.topics[0].topic_id

    def settle(self) -> None:
        """Wait until the broker has carried out all earlier changes.

        A Kafka shows changes before it has carried them out, one lot after the other. What is created when something
        later than the changes is visible belongs to the next lot, and is visible when the one before it is done.
        """
        for _ in range(2):
            self._barriers += 1
            self.create(f"barrier-{self._barriers}")

    def wait_for_leaders(self, name: str, partitions: int) -> None:
        """Wait until the partitions can be used: Kafka creates the logs of a new topic a moment after its metadata is
        visible. A request for offsets shows that.
        """
        topic = ListOffsetsRequest.Topic
        wanted = [topic.Partition(partition_index=at, timestamp=-1) for at in range(partitions)]
        request = ListOffsetsRequest(replica_id=-1, topics=[topic(name=name, partitions=wanted)])

        def codes() -> list[int]:
            answer = self.answer(request, 9)
            assert isinstance(answer, ListOffsetsResponse)
            return [each.error_code for each in answer.topics[0].partitions]

        until(codes, lambda found: not any(found))

    def close(self) -> None:
        self._connection.close()

    def plain(self, message: Struct, version: int, blank: tuple[str, ...] = ()) -> dict[str, Plain]:
        names = {topic_id: name for name, topic_id in self.ids.items()}
        result: dict[str, Plain] = {}
        for field in fields(type(message)):
            if version in field.versions:
                value = getattr(message, field.name)
                if field.name in blank:
                    result[field.name] = "BLANK"
                elif field.name == "producer_id":
                    result[field.name] = "PRODUCER" if value >= 0 else value
                elif field.name == "topic_id":
                    result[field.name] = value if value == NO_ID else f"ID OF {names.get(value, 'SOME TOPIC')}"
                elif field.name in OF_THE_CLUSTER and value not in MEANINGFUL:
                    result[field.name] = OF_THE_CLUSTER[field.name]
                else:
                    result[field.name] = self._value(value, version, blank)
        return result

    def _value(self, value: Any, version: int, blank: tuple[str, ...]) -> Plain:
        if isinstance(value, Struct):
            return self.plain(value, version, blank)
        if isinstance(value, list):
            items = [self._value(each, version, blank) for each in value]
            items = [each for each in items if not _is_ours(each)]
            # Kafka answers from hash tables in many places, so the order is not compared.
            return sorted(items, key=repr) if items and isinstance(items[0], dict) else items
        if isinstance(value, memoryview | bytearray):
            return bytes(value)
        return value


def _is_ours(item: Plain) -> bool:
    """Whether this is a setting that Kafka does not have."""
    return isinstance(item, dict) and str(item.get("name")).startswith("ottla.") and "config_source" in item


class Both:
    """The two sides of a comparison. Where Kafka sends only an error code, Ottla may add an error message."""

    def __init__(self, kafka: Side, ottla: Side, general_texts: Collection[str]) -> None:
        self.kafka = kafka
        self.ottla = ottla
        self._general_texts = general_texts

    def same(self, script: Script) -> list[Plain]:
        """Run the script on both sides; fail at the first answer that differs, else return the answers."""
        wanted = list(script(self.kafka))
        found = list(script(self.ottla))
        pairs = enumerate(zip(wanted, found, strict=True))
        differences = [line for at, (one, other) in pairs for line in self._differing(f"answer {at}", one, other)]
        assert not differences, "Kafka's, ours:\n" + "\n".join(differences[:60])
        return wanted

    def _differing(self, path: str, wanted: Plain, found: Plain) -> Iterator[str]:
        """One line for each value that differs."""
        if isinstance(wanted, dict) and isinstance(found, dict):
            for name in sorted(wanted.keys() | found.keys()):
                yield from self._differing(f"{path}.{name}", wanted.get(name, "(absent)"), found.get(name, "(absent)"))
        elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
            for at, (one, other) in enumerate(zip(wanted, found, strict=True)):
                yield from self._differing(f"{path}[{at}]", one, other)
        elif path.endswith("message") and (wanted is None or wanted in self._general_texts):
            if wanted and not found:
                yield f"{path}: {wanted!r}, nothing"
        elif wanted != found:
            yield f"{path}: {wanted!r}, {found!r}"
