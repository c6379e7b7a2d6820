"""ClientTelemetry: answers clients that ask which metrics to push, and takes what they push.

A push is decompressed and decoded by a worker, one at a time, because it may take some hundred milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Hashable
from typing import NamedTuple

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import METADATA_TOPIC_ID, NO_ID, random_uuid
from ottla.model.settings.metrics import TELEMETRY_MAX_BYTES
from ottla.model.settings.own import OTTLA_METRICS_CLIENTS_MAX
from ottla.records.compress import Codec, decompress
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.settings.configs import Configs
from ottla.server.telemetry.subscriptions import Subscriptions
from ottla.telemetry.instance import ClientInstance
from ottla.telemetry.instances import ClientInstances, ConnectionInstances
from ottla.telemetry.otlp import PushedMetrics, decode_metrics
from ottla.telemetry.protobuf import PayloadError
from ottla.telemetry.pushed_clients import PushedClients, PushPlace, told_for_ms
from ottla.telemetry.subscription import TelemetryClient, WantedMetrics, client_of, subscribe

log = logging.getLogger(__name__)

# Ids that Kafka never gives to a client instance.
_RESERVED = (NO_ID, METADATA_TOPIC_ID)
_TELEMETRY = "telemetry"


class TelemetryCaller(NamedTuple):
    """A client as its connection knows it. `holder` is its principal, or its address if it did not authenticate;
    `software` is its name and version.
    """

    client_id: str
    holder: str
    software: tuple[str, str]
    address: tuple[str, int]
    when_closed: dict[Hashable, Callable[[], None]]


class TelemetryPush(NamedTuple):
    subscription_id: int
    compression_type: int
    payload: bytes
    is_last: bool


class ClientTelemetry:
    def __init__(self, runtime: Runtime, configs: Configs, metadata: MetadataHost) -> None:
        self.subscriptions = Subscriptions(metadata)
        self.instances = ClientInstances()
        self.pushed = PushedClients(configs.broker[OTTLA_METRICS_CLIENTS_MAX])
        self.pushes: Counter[ErrorCode] = Counter()
        self.received_bytes = 0  # of accepted pushes, as they came
        self.bytes_max = configs.broker[TELEMETRY_MAX_BYTES]
        self._runtime = runtime
        self._decoding = asyncio.Lock()
        self._waiting = self._waiting_bytes = 0  # pushes that are decoded or wait for it
        self._told_version = -1  # of the subscriptions of which it was logged that they take too much work

    def close(self) -> None:
        self.subscriptions.close()

    def tidy(self) -> None:
        """Forget who was not heard of for long; called every `TELEMETRY_TIDY_MS`."""
        now_ms = self._runtime.steady_ms()
        self.instances.tidy(now_ms)
        self.pushed.tidy(now_ms)

    def ask(self, instance_id: bytes, caller: TelemetryCaller) -> tuple[ErrorCode, bytes, WantedMetrics]:
        """Return an error, the id of the client's instance, and what it is to push; a client without an id gets one."""
        now_ms = self._runtime.steady_ms()
        if instance_id == NO_ID:
            instance_id = self._new_id()
        instance = self._instance(instance_id, caller, now_ms)
        return instance.ask(now_ms), instance_id, instance.subscribed

    def push(self, instance_id: bytes, caller: TelemetryCaller, push: TelemetryPush) -> ErrorCode | Later[ErrorCode]:
        """Take a push, if the client may push it now."""
        error, instance, size = ErrorCode.INVALID_REQUEST, None, len(push.payload)
        if 0 < size <= self.bytes_max and not self._has_room(size):  # as if it had not come: it may be repeated
            error = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        elif instance_id not in _RESERVED:
            now_ms = self._runtime.steady_ms()
            instance = self._instance(instance_id, caller, now_ms)
            id, codec = push.subscription_id, push.compression_type
            error = instance.push(id, codec, size, self.bytes_max, now_ms, is_last=push.is_last)
        if error is not ErrorCode.NONE or instance is None or not push.payload:
            self.pushes[error] += 1
            return error
        self._waiting += 1
        self._waiting_bytes += size
        place = PushPlace(self._of_connection(caller), caller.holder)
        return self._runtime.tasks.later(self._take(instance, place, push))

    def _has_room(self, size: int) -> bool:
        return (
            self._waiting < limits.TELEMETRY_PUSHES_WAITING_MAX
            and self._waiting_bytes + size <= limits.TELEMETRY_BYTES_WAITING_MAX
        )

    async def _take(self, instance: ClientInstance, place: PushPlace, push: TelemetryPush) -> ErrorCode:
        try:
            async with self._decoding:
                pushed = await self._runtime.in_worker(_decode, push, self.bytes_max)
        except (ApiError, PayloadError) as error:
            log.info("a push of client %s cannot be read: %s", instance.client.client_id[:100], error)
            instance.failed(ErrorCode.INVALID_RECORD)
            self.pushes[ErrorCode.INVALID_RECORD] += 1
            return ErrorCode.INVALID_RECORD
        finally:
            self._waiting -= 1
            self._waiting_bytes -= len(push.payload)
        if not instance.subscribed.metrics:  # nobody asked for it: it is answered as with Kafka, and not kept
            self.pushes[ErrorCode.NONE] += 1
            return ErrorCode.NONE
        now_ms = self._runtime.steady_ms()
        expires_ms = now_ms + told_for_ms(instance.idle_ms, is_last=push.is_last)
        self.pushed.take(instance.client, place, pushed, now_ms, expires_ms)
        self.pushes[ErrorCode.NONE] += 1
        self.received_bytes += len(push.payload)
        return ErrorCode.NONE

    def _instance(self, id: bytes, caller: TelemetryCaller, now_ms: int) -> ClientInstance:
        def make(client: TelemetryClient) -> ClientInstance:
            version = self.subscriptions.version
            subscribed, is_complete = subscribe(client, id, self.subscriptions.all().values())
            if not is_complete and self._told_version != version:
                self._told_version = version
                log.warning(
                    "client %s takes too much work to match with the patterns of all client metrics subscriptions, so "
                    "some have no effect: make the patterns simpler",
                    client.client_id[:100],
                )
            # As with Kafka an instance ends with the connection by which it was made; it is made again if it needs be.
            self._of_connection(caller).made(id)
            return ClientInstance(client, subscribed, version)

        client = client_of(id, caller.client_id, caller.software, caller.address)
        return self.instances.find(id, client, self.subscriptions.version, now_ms, make)

    def _of_connection(self, caller: TelemetryCaller) -> ConnectionInstances:
        found = caller.when_closed.get(_TELEMETRY)
        if not isinstance(found, ConnectionInstances):
            found = caller.when_closed[_TELEMETRY] = ConnectionInstances(self.instances)
        return found

    def _new_id(self) -> bytes:
        while (id := random_uuid(self._runtime.rng)) in self.instances:
            pass
        return id


def _decode(push: TelemetryPush, bytes_max: int) -> PushedMetrics:
    """Runs in a worker."""
    unpacked_max = max(bytes_max, limits.TELEMETRY_UNPACKED_BYTES_MAX)
    return decode_metrics(decompress(Codec(push.compression_type), push.payload, unpacked_max))
