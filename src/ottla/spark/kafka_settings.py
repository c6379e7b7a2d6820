"""`kafka.*` options: Kafka's client settings by their names, and how they apply to this client.

Rules:
- Settings that have a meaning here are mapped; settings of Kafka's consumer or producer that have none (its buffers,
  its group membership) are accepted and ignored, so that a job moves from `kafka` to `ottla` unchanged.
- Settings that Spark's connector refuses are refused with the same words.
- Settings of security (`security.protocol`, `ssl.*`, `sasl.*`) become a `Security`, whose text shows no secret. Tasks
  get it as part of the settings.
- Any other name is an error that suggests the most similar known name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.spark.option_values import OptionError, whole
from ottla.spark.options import KAFKA_PREFIX, nearest

if TYPE_CHECKING:
    from ottla.client.options import ClientOptions
    from ottla.client.security.security import Security

BOOTSTRAP = "bootstrap.servers"

# Settings of a client, by the field of `ClientOptions`.
_CLIENT = {
    "request.timeout.ms": "request_timeout_ms",
    "default.api.timeout.ms": "api_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
}
_READING = (
    *("isolation.level", "fetch.min.bytes", "fetch.max.bytes", "fetch.max.wait.ms", "max.partition.fetch.bytes"),
    *("check.crcs", "group.id", "client.id", "client.rack"),
)
_WRITING = (
    *("acks", "batch.size", "linger.ms", "compression.type", "buffer.memory", "max.block.ms", "max.request.size"),
    *("delivery.timeout.ms", "enable.idempotence", "transactional.id", "transaction.timeout.ms", "client.id"),
    *("max.in.flight.requests.per.connection", "partitioner.class", "compression.gzip.level"),
    *("compression.lz4.level", "compression.zstd.level"),
)
_WITHOUT_MEANING = (
    *(
        "max.poll.records",
        "max.poll.interval.ms",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "receive.buffer.bytes",
    ),
    *("send.buffer.bytes", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "connections.max.idle.ms"),
    *("group.instance.id", "group.protocol", "group.remote.assignor", "partition.assignment.strategy"),
    *("allow.auto.create.topics", "exclude.internal.topics", "metric.reporters", "metrics.num.samples", "retries"),
    *("metrics.sample.window.ms", "metrics.recording.level", "client.dns.lookup", "auto.commit.interval.ms"),
    *("auto.include.jmx.reporter", "enable.metrics.push", "socket.connection.setup.timeout.max.ms"),
    *("metadata.max.idle.ms", "metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms"),
    *("partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms", "partitioner.ignore.keys"),
)
_REFUSED = {
    "auto.offset.reset": "set the source option 'startingOffsets' to 'earliest' or 'latest' instead: Spark keeps track "
    "of offsets, not the consumer",
    "key.deserializer": "keys are bytes; use DataFrame operations, or the option 'key.format'",
    "value.deserializer": "values are bytes; use DataFrame operations, or the option 'value.format'",
    "key.serializer": "keys are written as bytes; use DataFrame operations, or the option 'key.format'",
    "value.serializer": "values are written as bytes; use DataFrame operations, or the option 'value.format'",
    "enable.auto.commit": "Spark keeps track of offsets",
    "interceptor.classes": "there are no Java classes here",
}
_KNOWN = (BOOTSTRAP, *_CLIENT, *_READING, *_WRITING, *_WITHOUT_MEANING, *_REFUSED)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The `kafka.*` options that were given, without their prefix. All names are known ones."""

    bootstrap: str
    given: Mapping[str, str] = field(default_factory=dict)
    security: "Security | None" = None

    def get(self, name: str) -> str | None:
        """The text of one setting."""
        return self.given.get(name)

    def number(self, name: str, default: int) -> int:
        """A setting that is a whole number."""
        value = self.given.get(name)
        try:
            return default if value is None else whole(value)
        except OptionError as error:
            raise OptionError(f"option kafka.{name}: {error}") from None

    def choice(self, name: str, *choices: str) -> str:
        """A setting that is one of the given words; the first word is the default."""
        value = self.given.get(name, choices[0]).strip().lower()
        if value not in choices:
            raise OptionError(f"option kafka.{name}: one of {', '.join(choices)} is expected, not {value!r}")
        return value

    def client_options(self, client_id: str) -> "ClientOptions":
        """Options of a client that connects to this cluster under this client id."""
        from ottla.client.options import ClientOptions, parse_bootstrap  # as in `ReadSettings.fetch_options`

        numbers: dict[str, Any] = {
            attribute: self.number(name, getattr(ClientOptions(()), attribute)) for name, attribute in _CLIENT.items()
        }
        try:
            return ClientOptions(
                parse_bootstrap(self.bootstrap), client_id=client_id, security=self.security, **numbers
            )
        except ValueError as error:
            raise OptionError(f"option kafka.{BOOTSTRAP}: {error}") from None


def parse_kafka_settings(given: Mapping[str, str]) -> KafkaSettings:
    """The `kafka.*` options among those of a source or sink. Raises OptionError on unknown and refused ones."""
    from ottla.client.security.names import is_security_name

    found: dict[str, str] = {}
    secured: dict[str, str] = {}
    for option, value in given.items():
        name = option.lower().removeprefix(KAFKA_PREFIX)
        if name == option.lower():
            continue
        if name in _REFUSED:
            raise OptionError(f"Kafka option '{name}' is not supported: {_REFUSED[name]}")
        if is_security_name(name):
            secured[name] = value
            continue
        if name not in _KNOWN:
            hint = nearest(option, (KAFKA_PREFIX + each for each in _KNOWN))
            raise OptionError(f"unknown option {option!r}{hint}")
        found[name] = value
    bootstrap = found.get(BOOTSTRAP, "").strip()
    if not bootstrap:
        raise OptionError(f"Option 'kafka.{BOOTSTRAP}' must be specified: it says where the cluster is")
    return KafkaSettings(bootstrap, found, _security(secured))


def _security(settings: Mapping[str, str]) -> "Security | None":
    if not settings:
        return None
    from ottla.client.security.security import as_security

    try:
        return as_security(settings)
    except ValueError as error:
        raise OptionError(f"Kafka options of security: {error}") from None
