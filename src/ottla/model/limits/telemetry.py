"""What clients push about themselves (KIP-714): admins write subscriptions, clients choose what they push. And what a
node pushes to an OpenTelemetry collector, by OTLP over HTTP.
"""

from ottla.model.limits.units import KIB, MIB

# Client instances whose subscription a node knows, as with Kafka: some MB, and at most 80 MB of the longest texts. A
# client has one; further ones of the same connection push its oldest out. It has no more places among the clients
# whose metrics are told, either.
TELEMETRY_INSTANCES_MAX = 16_384
TELEMETRY_INSTANCES_PER_CONNECTION_MAX = 4
# Characters of a client id, and of the name and the version of the client's software.
TELEMETRY_CLIENT_CHARS_MAX = 250
# An instance is forgotten after this time, or three of its push intervals if that is longer, as with Kafka.
TELEMETRY_IDLE_MS = 60_000
# How often instances that are to be forgotten are looked for.
TELEMETRY_TIDY_MS = 10_000
# Subscriptions that are matched with a client, by name; further ones are logged and have no effect.
TELEMETRY_SUBSCRIPTIONS_MAX = 1_000
# Names of metrics in the answer to a client; one that is subscribed to more is asked for all.
TELEMETRY_NAMES_MAX = 1_000
# Steps that all patterns of a subscription may have together, and steps that matching a client with all subscriptions
# may take (some 20 ms): a subscription beyond matches nobody. A plain pattern takes some 2 steps a character.
TELEMETRY_PATTERN_STEPS_MAX = 3_000
TELEMETRY_MATCHING_WORK_MAX = 30_000
# A push after decompression. Clients push some KiB; telemetry.max.bytes bounds it before.
TELEMETRY_UNPACKED_BYTES_MAX = 4 * MIB
# Values in a push, and fields of the encoded message: more are left out, or the push is refused. A worker thread takes
# some hundred milliseconds for so many.
TELEMETRY_POINTS_MAX = 5_000
TELEMETRY_FIELDS_MAX = 200_000
# Groups within groups in an encoded message; OTLP has none.
TELEMETRY_GROUP_DEPTH_MAX = 100
# A value with a longer name, more labels, or longer ones is left out.
TELEMETRY_NAME_CHARS_MAX = 200
TELEMETRY_LABELS_MAX = 20
TELEMETRY_LABEL_CHARS_MAX = 300
# Pushes that wait to be decoded, and their bytes; whoever pushes more is throttled. One is decoded at a time: a thread
# that decodes takes its share of the interpreter.
TELEMETRY_PUSHES_WAITING_MAX = 100
TELEMETRY_BYTES_WAITING_MAX = 16 * MIB
# Client instances whose metrics are told (default of ottla.metrics.clients.max), and series of each of them. A consumer
# of some partitions has a hundred series. So many take 20 MB. The characters of their names and labels are bounded,
# too: series beyond are left out.
TELEMETRY_CLIENTS = 100
TELEMETRY_SERIES_MAX = 500
TELEMETRY_SERIES_CHARS_MAX = 200_000
# How often metrics are pushed (default of ottla.otel.interval.ms), as with OpenTelemetry's libraries, and the shortest
# interval: a collection of many topics takes some 100 ms of the event loop, in slices.
OTEL_INTERVAL_MS = 60_000
OTEL_INTERVAL_MS_MIN = 1_000
# Data points in one request; the rest follows in further ones. They take some MB, and collectors accept 20 by default.
OTEL_POINTS_PER_PUSH_MAX = 10_000
# How long one request may take, connecting included. A thread of its own waits for it, and no request of a client.
OTEL_PUSH_S = 10
# What is read of an answer: it says how much of a push was not accepted, and why.
OTEL_ANSWER_BYTES_MAX = 64 * KIB
# After a failed push the next one waits: twice as long each time, up to this, whatever Retry-After says.
OTEL_RETRY_MS = 1_000
OTEL_RETRY_MS_MAX = 120_000
# Characters of a reason in the log.
OTEL_REASON_CHARS_MAX = 200
# Spans that wait to be pushed; further ones are dropped and counted. Each takes some KB.
OTEL_SPANS_WAITING_MAX = 4_096
# Spans in one request, and how often waiting ones are pushed.
OTEL_SPANS_PER_PUSH_MAX = 512
OTEL_SPANS_INTERVAL_MS = 2_000
# Characters of a text in a span.
OTEL_TEXT_CHARS_MAX = 250
# Spans that are encoded in one turn of the event loop.
OTEL_SPANS_PER_SLICE = 100
# Spans are told by the time of day as it was, until it differs by more: it is known to the millisecond only.
OTEL_CLOCK_STEP_MS = 5
# Bytes of the trace that another node says a request is part of.
TRACE_PARENT_BYTES_MAX = 64
# Transactions whose end is traced, and whose markers are not written yet; of others the markers are not traced.
TRACED_TRANSACTIONS_MAX = 1_000
# How long a stopping node tries to push what is left.
OTEL_LAST_PUSH_S = 2
