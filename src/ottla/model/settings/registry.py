"""The settings of a schema registry, with Confluent's and Kafka's names. They are no settings of a broker.

The settings `ssl.*`, `super.users`, `allow.everyone.if.no.acl.found` and `ottla.audit.*` of a broker exist here as
well, with the same meaning (see `ottla.registry.security.settings`).
"""

from ottla.model.section import HIGH, LOW, Section
from ottla.model.validators import Items, OneOf, at_least

registry = Section(
    "Schema registry",
    "In the file that `ottla registry --config` names. `kafkastore.` before `security.protocol`, `sasl.*` or `ssl.*` "
    "makes it a setting of the registry's own connections to the cluster; `ssl.*` alone is of its HTTPS listener, as "
    "for brokers.",
)

REGISTRY_LISTENERS = registry.items(
    "listeners",
    ("http://127.0.0.1:8081",),
    "The address to listen on: `http://host:port` or `https://host:port`.",
    valid=Items(),
    importance=HIGH,
)
HOST_NAME = registry.optional_text("host.name", "Host name under which other registries reach this one.")
KAFKASTORE_BOOTSTRAP_SERVERS = registry.optional_text(
    "kafkastore.bootstrap.servers", "Addresses of the cluster's brokers.", importance=HIGH
)
KAFKASTORE_TOPIC = registry.text("kafkastore.topic", "_schemas", "The topic that schemas are kept in.")
KAFKASTORE_TOPIC_REPLICATION_FACTOR = registry.int32(
    "kafkastore.topic.replication.factor",
    3,
    "Replication factor of that topic when it is created; -1 is the broker's default.",
    valid=at_least(-1),
)
SCHEMA_REGISTRY_GROUP_ID = registry.text(
    "schema.registry.group.id", "schema-registry", "The group in which registries elect their leader."
)
AUTHENTICATION_METHOD = registry.items(
    "authentication.method",
    ("none",),
    "How clients prove who they are, one or more of: `basic` (a user and password of the cluster), `bearer` (a JWT), "
    "`ssl` (the certificate of the client); `none` asks nobody, and allows everybody everything.",
    valid=Items(("none", "basic", "bearer", "ssl", "NONE", "BASIC", "BEARER", "SSL")),
    importance=HIGH,
)
AUTHENTICATION_REALM = registry.text(
    "authentication.realm", "schema-registry", "The realm that clients are asked to authenticate for."
)
AUTHENTICATION_SASL_MECHANISM = registry.optional_text(
    "authentication.sasl.mechanism",
    "The mechanism by which brokers check the password of `basic`: `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`; "
    "without a value that of the registry's own connections.",
    valid=OneOf(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
)
FAILED_AUTHENTICATION_DELAY_MS = registry.int32(
    "connection.failed.authentication.delay.ms",
    1_000,
    "How long the answer to a failed authentication is held back.",
    valid=at_least(0),
    importance=LOW,
)
INTER_INSTANCE_SECRET = registry.password(
    "inter.instance.secret",
    "The secret with which instances sign the requests that they forward to each other, the same for all; 16 "
    "characters or more, or `env:NAME`, or `file:PATH`.",
    importance=HIGH,
)
INTER_INSTANCE_PRINCIPALS = registry.text(
    "inter.instance.principals",
    "",
    "Principals of certificates of other instances, separated by semicolons: requests that they forward are trusted "
    "without a signature.",
)
JWKS_ENDPOINT_URL = registry.optional_text(
    "sasl.oauthbearer.jwks.endpoint.url",
    "Address of the keys that tokens are checked with: http, https or file.",
    importance=HIGH,
)
JWKS_ENDPOINT_REFRESH_MS = registry.int64(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    3_600_000,
    "How often those keys are read again.",
    valid=at_least(1_000),
    importance=LOW,
)
JWKS_ENDPOINT_RETRY_BACKOFF_MS = registry.int64(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    100,
    "First wait before the keys are asked for again.",
    valid=at_least(1),
    importance=LOW,
)
JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = registry.int64(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    10_000,
    "Longest wait before the keys are asked for again, and shortest time between two requests for a key that is not "
    "known.",
    valid=at_least(1),
    importance=LOW,
)
TOKEN_CLOCK_SKEW_SECONDS = registry.int32(
    "sasl.oauthbearer.clock.skew.seconds",
    30,
    "Difference of clocks that is accepted.",
    valid=at_least(0),
    importance=LOW,
)
TOKEN_EXPECTED_AUDIENCE = registry.items(
    "sasl.oauthbearer.expected.audience", (), "Audiences of which a token must name one.", valid=Items()
)
TOKEN_EXPECTED_ISSUER = registry.optional_text(
    "sasl.oauthbearer.expected.issuer", "Issuer that a token must have.", importance=HIGH
)
TOKEN_SCOPE_CLAIM_NAME = registry.text(
    "sasl.oauthbearer.scope.claim.name", "scope", "Claim that holds the scope.", importance=LOW
)
TOKEN_SUB_CLAIM_NAME = registry.text(
    "sasl.oauthbearer.sub.claim.name", "sub", "Claim that holds the name of the user.", importance=LOW
)
