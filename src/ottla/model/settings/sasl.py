"""Security: SASL. Mechanisms, logins, Kerberos and OAuth."""

from ottla.model.limits import REQUEST_FRAME_BYTES_BEFORE_AUTH_MAX
from ottla.model.section import CLUSTER_WIDE, HIGH, LOW, PER_BROKER, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import Items, OneOf, between

_ON_DEMAND = "whoever needs a token gets a new one when four fifths of its life are over"
BY_LIBRARY = "the Kerberos library fetches tickets itself when they are needed"

sasl = Section("Security: SASL", "Mechanisms, logins, Kerberos and OAuth.")

SASL_ENABLED_MECHANISMS = sasl.items(
    "sasl.enabled.mechanisms", ("GSSAPI",), "SASL mechanisms that clients may use.", valid=Items(), dynamic=PER_BROKER
)
SASL_MECHANISM_INTER_BROKER_PROTOCOL = sasl.text(
    "sasl.mechanism.inter.broker.protocol", "GSSAPI", "SASL mechanism between brokers.", dynamic=PER_BROKER
)
SASL_JAAS_CONFIG = sasl.password(
    "sasl.jaas.config", "Login modules and their options, in JAAS form.", dynamic=PER_BROKER
)
SASL_SERVER_CALLBACK_HANDLER_CLASS = sasl.class_name(
    "sasl.server.callback.handler.class",
    None,
    "Class that checks credentials on the server.",
)
SASL_CLIENT_CALLBACK_HANDLER_CLASS = sasl.class_name(
    "sasl.client.callback.handler.class",
    None,
    "Class that supplies credentials for outgoing connections.",
)
SASL_LOGIN_CLASS = sasl.class_name("sasl.login.class", None, "Class that logs in.")
SASL_LOGIN_CALLBACK_HANDLER_CLASS = sasl.class_name(
    "sasl.login.callback.handler.class",
    None,
    "Class that supplies credentials for logging in.",
)
SASL_SERVER_MAX_RECEIVE_SIZE = sasl.int32(
    "sasl.server.max.receive.size",
    REQUEST_FRAME_BYTES_BEFORE_AUTH_MAX,
    "Largest message before a connection is authenticated.",
)
OTTLA_SCRAM_UNKNOWN_USERS_SECRET = sasl.password(
    "ottla.scram.unknown.users.secret",
    "Random secret by which all brokers answer alike for SCRAM users that do not exist; the controller chooses it.",
    importance=LOW,
    dynamic=CLUSTER_WIDE,
)
CONNECTIONS_MAX_REAUTH_MS = sasl.int64(
    "connections.max.reauth.ms", 0, "Time after which a connection must authenticate again; 0 never."
)
SASL_KERBEROS_SERVICE_NAME = sasl.optional_text(
    "sasl.kerberos.service.name",
    "Kerberos principal name the brokers run as.",
    dynamic=PER_BROKER,
)
SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES = sasl.items(
    "sasl.kerberos.principal.to.local.rules",
    ("DEFAULT",),
    "Rules that turn Kerberos principals into user names.",
    valid=Items(),
    dynamic=PER_BROKER,
)
SASL_KERBEROS_KINIT_CMD = sasl.text(
    "sasl.kerberos.kinit.cmd", "/usr/bin/kinit", "Path of kinit.", dynamic=PER_BROKER, no_effect=BY_LIBRARY
)
SASL_KERBEROS_TICKET_RENEW_WINDOW_FACTOR = sasl.double(
    "sasl.kerberos.ticket.renew.window.factor",
    0.8,
    "Share of a ticket's life after which it is renewed.",
    dynamic=PER_BROKER,
    no_effect=BY_LIBRARY,
)
SASL_KERBEROS_TICKET_RENEW_JITTER = sasl.double(
    "sasl.kerberos.ticket.renew.jitter",
    0.05,
    "Random part added to that time.",
    dynamic=PER_BROKER,
    no_effect=BY_LIBRARY,
)
SASL_KERBEROS_MIN_TIME_BEFORE_RELOGIN = sasl.int64(
    "sasl.kerberos.min.time.before.relogin",
    60_000,
    "Shortest time between two renewals.",
    dynamic=PER_BROKER,
    no_effect=BY_LIBRARY,
)
SASL_LOGIN_REFRESH_WINDOW_FACTOR = sasl.double(
    "sasl.login.refresh.window.factor",
    0.8,
    "Share of a credential's life after which it is refreshed.",
    dynamic=PER_BROKER,
    no_effect=_ON_DEMAND,
)
SASL_LOGIN_REFRESH_WINDOW_JITTER = sasl.double(
    "sasl.login.refresh.window.jitter",
    0.05,
    "Random part added to that time.",
    dynamic=PER_BROKER,
    no_effect=_ON_DEMAND,
)
SASL_LOGIN_REFRESH_MIN_PERIOD_SECONDS = sasl.int16(
    "sasl.login.refresh.min.period.seconds",
    60,
    "Shortest time before a credential is refreshed.",
    dynamic=PER_BROKER,
    no_effect=_ON_DEMAND,
)
SASL_LOGIN_REFRESH_BUFFER_SECONDS = sasl.int16(
    "sasl.login.refresh.buffer.seconds",
    300,
    "Time before its end at which a credential is refreshed at the latest.",
    dynamic=PER_BROKER,
    no_effect=_ON_DEMAND,
)
SASL_LOGIN_CONNECT_TIMEOUT_MS = sasl.optional_int32(
    "sasl.login.connect.timeout.ms",
    "Wait for a connection to the identity provider.",
    importance=LOW,
)
SASL_LOGIN_READ_TIMEOUT_MS = sasl.optional_int32(
    "sasl.login.read.timeout.ms",
    "Wait for an answer of the identity provider.",
    importance=LOW,
)
SASL_LOGIN_RETRY_BACKOFF_MS = sasl.int64(
    "sasl.login.retry.backoff.ms",
    100,
    "First wait before the identity provider is asked again.",
    importance=LOW,
)
SASL_LOGIN_RETRY_BACKOFF_MAX_MS = sasl.int64(
    "sasl.login.retry.backoff.max.ms",
    10_000,
    "Longest wait before the identity provider is asked again.",
    importance=LOW,
)
SASL_OAUTHBEARER_JWT_RETRIEVER_CLASS = sasl.class_name(
    "sasl.oauthbearer.jwt.retriever.class",
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    "Class that fetches tokens.",
)
SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS = sasl.class_name(
    "sasl.oauthbearer.jwt.validator.class",
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    "Class that checks tokens.",
)
SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL = sasl.optional_text(
    "sasl.oauthbearer.token.endpoint.url",
    "Address tokens are fetched from.",
)
SASL_OAUTHBEARER_SCOPE = sasl.optional_text("sasl.oauthbearer.scope", "Scope to ask for.")
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID = sasl.optional_text(
    "sasl.oauthbearer.client.credentials.client.id",
    "Client id for the client-credentials grant.",
)
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET = sasl.password(
    "sasl.oauthbearer.client.credentials.client.secret",
    "Client secret for the client-credentials grant.",
)
SASL_OAUTHBEARER_ASSERTION_ALGORITHM = sasl.text(
    "sasl.oauthbearer.assertion.algorithm",
    "RS256",
    "Algorithm that signs the assertion.",
    valid=OneOf(("ES256", "RS256"), ignore_case=True),
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_AUD = sasl.optional_text(
    "sasl.oauthbearer.assertion.claim.aud",
    "Audience in the assertion.",
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_EXP_SECONDS = sasl.int32(
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    300,
    "Life of the assertion.",
    valid=between(0, 86_400),
    importance=LOW,
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_ISS = sasl.optional_text(
    "sasl.oauthbearer.assertion.claim.iss",
    "Issuer in the assertion.",
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_JTI_INCLUDE = sasl.boolean(
    "sasl.oauthbearer.assertion.claim.jti.include",
    False,
    "Put a unique id into the assertion.",
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_NBF_SECONDS = sasl.int32(
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    60,
    "How long before now the assertion is valid.",
    valid=between(0, 3_600),
    importance=LOW,
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_SUB = sasl.optional_text(
    "sasl.oauthbearer.assertion.claim.sub",
    "Subject in the assertion.",
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_ASSERTION_FILE = sasl.optional_text(
    "sasl.oauthbearer.assertion.file", "File with a ready assertion.", no_effect=NOT_YET
)
SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_FILE = sasl.optional_text(
    "sasl.oauthbearer.assertion.private.key.file",
    "File of the key that signs the assertion.",
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_PASSPHRASE = sasl.password(
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "Passphrase of that key.",
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_ASSERTION_TEMPLATE_FILE = sasl.optional_text(
    "sasl.oauthbearer.assertion.template.file",
    "File with the assertion's header and claims.",
    no_effect=NOT_YET,
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = sasl.text(
    "sasl.oauthbearer.scope.claim.name",
    "scope",
    "Claim that holds the scope.",
    importance=LOW,
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = sasl.text(
    "sasl.oauthbearer.sub.claim.name",
    "sub",
    "Claim that holds the subject.",
    importance=LOW,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = sasl.optional_text(
    "sasl.oauthbearer.jwks.endpoint.url",
    "Address of the keys that tokens are checked with.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = sasl.int64(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    3_600_000,
    "How often those keys are read again.",
    importance=LOW,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = sasl.int64(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    100,
    "First wait before the keys are asked for again.",
    importance=LOW,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = sasl.int64(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    10_000,
    "Longest wait before the keys are asked for again.",
    importance=LOW,
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = sasl.int32(
    "sasl.oauthbearer.clock.skew.seconds",
    30,
    "Difference of clocks that is accepted.",
    importance=LOW,
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE = sasl.items(
    "sasl.oauthbearer.expected.audience",
    (),
    "Audiences of which a token must name one.",
    valid=Items(),
    importance=HIGH,
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = sasl.optional_text(
    "sasl.oauthbearer.expected.issuer",
    "Issuer that a token must have.",
    importance=HIGH,
)
