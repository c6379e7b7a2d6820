"""The settings of a write, from its options: the topic, how rows are sent, and the delivery guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.options import ClientOptions
from ottla.client.producer.options import ProducerOptions
from ottla.model import limits
from ottla.records.compress import Codec
from ottla.spark.kafka_settings import KafkaSettings, parse_kafka_settings
from ottla.spark.option_values import OptionError, whole
from ottla.spark.options import (
    BATCH_ID,
    CHECKPOINT_LOCATION,
    DELIVERY,
    SINK_GIVE_UP,
    SINK_ID,
    TOPIC,
    Use,
    parse_options,
)
from ottla.spark.sink.checkpoint import one_spelling

_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
_LEVELS = {Codec.GZIP: "gzip", Codec.LZ4: "lz4", Codec.ZSTD: "zstd"}
_NUMBERS = {
    "linger.ms": "linger_ms",
    "max.request.size": "max_request_bytes",
    "buffer.memory": "buffer_bytes",
    "max.block.ms": "max_block_ms",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "request.timeout.ms": "request_timeout_ms",
    "max.in.flight.requests.per.connection": "max_in_flight",
}


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """The parsed options of one write. It can be pickled, because tasks get it."""

    kafka: KafkaSettings
    topic: str | None
    exactly_once: bool
    sink_id: str | None  # the sink's name in the protocol; None for a write that is never repeated
    batch_bytes: int
    batch_id: int | None = None  # batch writes only: its number among the writes of the sink
    give_up: tuple[str, int] | None = None  # the run and the batch whose lost rows are given up
    checkpoint: str | None = None  # location of the query's checkpoint

    def client(self, role: str) -> ClientOptions:
        """Options of a client; `role` is part of its client id."""
        return self.kafka.client_options(self.kafka.get("client.id") or f"ottla-spark-{role}")

    @property
    def transaction_timeout_ms(self) -> int:
        """By default the longest timeout that brokers allow, because a task's transaction is open until the driver
        commits.
        """
        return self.kafka.number("transaction.timeout.ms", limits.SPARK_TRANSACTION_TIMEOUT_MS)

    def producer(self, transactional_id: str | None = None) -> ProducerOptions:
        """Options of the tasks' producers."""
        kafka = self.kafka
        values: dict[str, Any] = {
            field: kafka.number(name, getattr(ProducerOptions(), field)) for name, field in _NUMBERS.items()
        }
        acks = (kafka.get("acks") or "all").strip().lower()
        if acks not in _ACKS:
            raise OptionError(f"option kafka.acks: one of all, -1, 0, 1 is expected, not {acks!r}")
        codec = Codec[kafka.choice("compression.type", "none", "gzip", "snappy", "lz4", "zstd").upper()]
        level = kafka.get(f"compression.{_LEVELS[codec]}.level") if codec in _LEVELS else None
        idempotence = kafka.choice("enable.idempotence", "true", "false") == "true"
        if transactional_id is not None and (_ACKS[acks] != -1 or not idempotence):
            raise OptionError("delivery=exactly_once needs kafka.acks=all and kafka.enable.idempotence=true")
        try:
            return ProducerOptions(
                acks=_ACKS[acks],
                idempotent=idempotence if kafka.get("enable.idempotence") else None,
                codec=codec,
                codec_level=None if level is None else whole(level),
                batch_size_bytes=self.batch_bytes,
                transactional_id=transactional_id,
                transaction_timeout_ms=self.transaction_timeout_ms,
                **values,
            )
        except ValueError as error:
            raise OptionError(str(error)) from None


def write_settings(given: Mapping[str, str], *, streaming: bool) -> WriteSettings:
    """Parse and check all options of a write."""
    options = parse_options(given, Use.WRITE)
    kafka = parse_kafka_settings(given)
    for name, why in (
        ("transactional.id", "the sink makes its own transactional ids; see the option 'delivery'"),
        ("partitioner.class", "there are no Java classes here; use a column 'partition'"),
    ):
        if kafka.get(name) is not None:
            raise OptionError(f"Kafka option '{name}' is not supported: {why}")
    exactly_once = (options[DELIVERY] or ("exactly_once" if streaming else "at_least_once")) == "exactly_once"
    sink_id, checkpoint = options[SINK_ID], options[CHECKPOINT_LOCATION]
    if exactly_once and streaming and sink_id is None:
        sink_id = one_spelling(checkpoint) if checkpoint else None
        if sink_id is None:
            raise OptionError(
                "delivery=exactly_once needs a name for the sink that stays the same when the query is restarted: set "
                "the option 'checkpointLocation' on the query itself, or 'sink.id' (or choose delivery=at_least_once)"
            )
    if options[BATCH_ID] is not None and (streaming or not exactly_once or sink_id is None):
        raise OptionError(
            "option batch.id: it numbers batch writes, so that each is done once; that needs delivery=exactly_once and "
            "a sink.id (streams have numbers of their own)"
        )
    settings = WriteSettings(
        kafka=kafka,
        topic=options[TOPIC],
        exactly_once=exactly_once,
        sink_id=sink_id,
        batch_bytes=min(
            kafka.number("batch.size", limits.SPARK_BATCH_BYTES),
            kafka.number("max.request.size", ProducerOptions().max_request_bytes),
        ),
        batch_id=options[BATCH_ID],
        give_up=options[SINK_GIVE_UP],
        checkpoint=checkpoint,
    )
    settings.producer("checked" if exactly_once else None)  # find mistakes before a task begins
    settings.client("checked")
    return settings
