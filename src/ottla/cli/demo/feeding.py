"""The shop as a producer: creates topics, registers schemas, and sends its events at a steady rate."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ottla.cli.demo.shop import SCHEMAS, USERS, Shop, ShopEvent
from ottla.schemas.avro.json_values import AvroValues
from ottla.schemas.framing import frame
from ottla.schemas.schema import SchemaSource

if TYPE_CHECKING:
    from ottla.client.blocking.blocking import Blocking

PARTITIONS = 2
EVENTS_PER_S = 1_500
_CHUNK = 100


def prepare(client: Blocking, registry_url: str) -> dict[str, int]:
    """Create the topics and register the schemas; the ids of the schemas by topic."""
    from ottla.client.registry import RegistryOptions, SchemaRegistry
    from ottla.model.topic_settings import CLEANUP_POLICY

    compacted = {CLEANUP_POLICY.name: "compact"}
    for name in SCHEMAS:
        client.admin.topics.create(name, partitions=PARTITIONS, configs=compacted if name == USERS else {})
    registry = SchemaRegistry(RegistryOptions.of(registry_url))
    return {
        name: registry.register(f"{name}-value", SchemaSource(json.dumps(schema))) for name, schema in SCHEMAS.items()
    }


class Feed:
    """Sends the events of a shop, in a thread of its own; the second half of them only after `go_on` was called."""

    def __init__(self, client: Blocking, shop: Shop, ids: dict[str, int]) -> None:
        self._client = client
        self._shop = shop
        self._ids = ids
        self._values = {name: AvroValues(SchemaSource(json.dumps(schema))) for name, schema in SCHEMAS.items()}
        self._thread = threading.Thread(target=self._run, name="shop", daemon=True)
        self._stopping = False
        self._may_go_on = threading.Event()
        self._failure: BaseException | None = None
        self.told = 0
        self.total = len(shop.customers()) + shop.event_count() + len(shop.closing(0))

    def start(self) -> None:
        self._tell(self._shop.customers())
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether all events were sent. Raises the exception that stopped the thread."""
        if self._failure is not None:
            raise self._failure
        return not self._thread.is_alive()

    def go_on(self) -> None:
        self._may_go_on.set()

    def stop(self) -> None:
        self._stopping = True
        self.go_on()
        self._thread.join()

    def _run(self) -> None:
        try:
            last_ms = self._shop.opened_ms
            for chunk in _chunks(self._shop.events()):
                self._tell(chunk)
                last_ms = chunk[-1].told_ms
                if self.told >= self._shop.orders:  # every order has about one payment: this is half of all
                    self._may_go_on.wait()
                if self._stopping:
                    return
                time.sleep(_CHUNK / EVENTS_PER_S)
            self._tell(self._shop.closing(last_ms))
        except BaseException as failure:
            self._failure = failure

    def _tell(self, events: Iterable[ShopEvent]) -> None:
        by_topic: dict[str, list[tuple[bytes | None, bytes | None]]] = {}
        for event in events:
            by_topic.setdefault(event.topic, []).append((event.key.encode(), self._encode(event)))
        for topic, pairs in by_topic.items():
            self._client.send_all(topic, pairs)
            self.told += len(pairs)

    def _encode(self, event: ShopEvent) -> bytes:
        return frame(self._ids[event.topic], self._values[event.topic].to_payload(event.value))


def _chunks(events: Iterator[ShopEvent]) -> Iterator[list[ShopEvent]]:
    while chunk := list(islice(events, _CHUNK)):
        yield chunk
