"""What clients push about themselves (KIP-714)."""

from ottla.observe.metrics.declaration import Area

clients = Area(
    "Clients",
    "Clients push what a subscription asks of them (`ottla config set client-metrics NAME metrics=* "
    "interval.ms=10000`, or `kafka-client-metrics.sh`); Kafka's Java clients and librdkafka do so by themselves. "
    "Besides what follows each client instance has what it pushed, by derived names: "
    "`org.apache.kafka.producer.record.send.total` is told as `ottla_client_producer_record_send_total`. "
    "Everything that is no letter or digit becomes `_`; the name of a counter ends with `_total`. Labels are "
    "`client_id`, `client_instance_id` and those that the client pushed. Only gauges and sums are told. A client "
    "pushes to one broker at a time, so each broker tells other clients, at most `ottla.metrics.clients.max`, "
    "until nothing came for three intervals, and at least for a minute. A connection has four of these places at "
    "most; if all are taken, whoever has fewer (a principal, or an address without authentication) gets one of whoever "
    "has most. Of a client id, and of the name and version of its software, the first 250 characters are known. "
    "What a client pushes that is asked for nothing is not kept. `ottla client list` lists them.",
)

SUBSCRIPTIONS = clients.gauge("ottla_telemetry_subscriptions", "Client metrics subscriptions in effect.")
INSTANCES = clients.gauge("ottla_telemetry_client_instances", "Client instances that asked or pushed lately.")
PUSHES = clients.counter("ottla_telemetry_pushes_total", "Pushes, by how they were answered.", "error")
RECEIVED = clients.counter(
    "ottla_telemetry_received_bytes_total", "Pushes that were taken, as they came: compressed.", unit="bytes"
)
LEFT_OUT = clients.counter(
    "ottla_telemetry_values_left_out_total",
    "Values that clients pushed and that were too many, too long, or of another kind.",
)
CLIENT = clients.gauge(
    "ottla_telemetry_client_info",
    "1; what is known of a client instance whose metrics are told.",
    "client_id",
    "client_instance_id",
    "software",
    "software_version",
    "address",
    "rack",
    "group_id",
    "group_member_id",
    "transactional_id",
)
LAST_PUSH = clients.gauge(
    "ottla_telemetry_client_last_push_seconds",
    "How long ago such a client pushed last.",
    "client_id",
    "client_instance_id",
    unit="seconds",
)
