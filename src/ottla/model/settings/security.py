"""Security: TLS, principals and tokens. Which clients may connect, and how they authenticate."""

from ottla.model.section import LOW, PER_BROKER, Section
from ottla.model.validators import Items, OneOf, at_least

security = Section("Security: TLS, principals and tokens", "Who may connect, and how it is proven.")

_JAVA = "it names a part of Java's libraries; OpenSSL does the same here"

PRINCIPAL_BUILDER_CLASS = security.class_name(
    "principal.builder.class",
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "Class that makes a principal of what a connection proved; a node with any other does not start.",
    dynamic=PER_BROKER,
)
SECURITY_PROVIDERS = security.optional_text(
    "security.providers",
    "Classes that provide security algorithms; a node that is given some does not start.",
    importance=LOW,
)
SSL_CLIENT_AUTH = security.text(
    "ssl.client.auth",
    "none",
    "Whether clients must, may or need not show a certificate.",
    valid=OneOf(("required", "requested", "none")),
    dynamic=PER_BROKER,
)
SSL_PRINCIPAL_MAPPING_RULES = security.text(
    "ssl.principal.mapping.rules", "DEFAULT", "Rules that turn a certificate's name into a user name.", importance=LOW
)
SSL_ALLOW_DN_CHANGES = security.boolean(
    "ssl.allow.dn.changes",
    False,
    "Let AlterConfigs set a key store whose certificate has another distinguished name.",
    importance=LOW,
)
SSL_ALLOW_SAN_CHANGES = security.boolean(
    "ssl.allow.san.changes",
    False,
    "Let AlterConfigs set a key store whose certificate lacks alternative names of the present one.",
    importance=LOW,
)
SSL_PROTOCOL = security.text("ssl.protocol", "TLSv1.3", "TLS version to prefer.", dynamic=PER_BROKER, no_effect=_JAVA)
SSL_PROVIDER = security.optional_text(
    "ssl.provider", "Provider of the TLS implementation.", dynamic=PER_BROKER, no_effect=_JAVA
)
SSL_ENABLED_PROTOCOLS = security.items(
    "ssl.enabled.protocols",
    (
        "TLSv1.2",
        "TLSv1.3",
    ),
    "TLS versions that are accepted.",
    valid=Items(),
    dynamic=PER_BROKER,
)
SSL_CIPHER_SUITES = security.items(
    "ssl.cipher.suites",
    (),
    "Cipher suites that are accepted; empty means the usual ones.",
    valid=Items(),
    dynamic=PER_BROKER,
)
SSL_KEYSTORE_TYPE = security.text("ssl.keystore.type", "JKS", "Format of the key store.", dynamic=PER_BROKER)
SSL_KEYSTORE_LOCATION = security.optional_text("ssl.keystore.location", "File of the key store.", dynamic=PER_BROKER)
SSL_KEYSTORE_PASSWORD = security.password("ssl.keystore.password", "Password of the key store.", dynamic=PER_BROKER)
SSL_KEY_PASSWORD = security.password("ssl.key.password", "Password of the private key.", dynamic=PER_BROKER)
SSL_KEYSTORE_KEY = security.password("ssl.keystore.key", "Private key as text.", dynamic=PER_BROKER)
SSL_KEYSTORE_CERTIFICATE_CHAIN = security.password(
    "ssl.keystore.certificate.chain", "Certificate chain as text.", dynamic=PER_BROKER
)
SSL_TRUSTSTORE_TYPE = security.text("ssl.truststore.type", "JKS", "Format of the trust store.", dynamic=PER_BROKER)
SSL_TRUSTSTORE_LOCATION = security.optional_text(
    "ssl.truststore.location", "File of the trust store.", dynamic=PER_BROKER
)
SSL_TRUSTSTORE_PASSWORD = security.password(
    "ssl.truststore.password", "Password of the trust store.", dynamic=PER_BROKER
)
SSL_TRUSTSTORE_CERTIFICATES = security.password(
    "ssl.truststore.certificates", "Trusted certificates as text.", dynamic=PER_BROKER
)
SSL_KEYMANAGER_ALGORITHM = security.text(
    "ssl.keymanager.algorithm",
    "SunX509",
    "Algorithm of the key manager.",
    dynamic=PER_BROKER,
    no_effect=_JAVA,
)
SSL_TRUSTMANAGER_ALGORITHM = security.text(
    "ssl.trustmanager.algorithm",
    "PKIX",
    "Algorithm of the trust manager.",
    dynamic=PER_BROKER,
    no_effect=_JAVA,
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = security.text(
    "ssl.endpoint.identification.algorithm",
    "https",
    "How the name of the server is checked against its certificate.",
    importance=LOW,
    dynamic=PER_BROKER,
)
SSL_SECURE_RANDOM_IMPLEMENTATION = security.optional_text(
    "ssl.secure.random.implementation",
    "Random generator for TLS.",
    importance=LOW,
    dynamic=PER_BROKER,
    no_effect=_JAVA,
)
SSL_ENGINE_FACTORY_CLASS = security.class_name(
    "ssl.engine.factory.class",
    None,
    "Class that makes TLS engines; a node with any other than Kafka's own does not start.",
    importance=LOW,
    dynamic=PER_BROKER,
)
DELEGATION_TOKEN_SECRET_KEY = security.password(
    "delegation.token.secret.key",
    "Secret that delegation tokens are signed with, the same on all nodes; without it there are no tokens.",
)
DELEGATION_TOKEN_MAX_LIFETIME_MS = security.int64(
    "delegation.token.max.lifetime.ms",
    604_800_000,
    "Longest life of a delegation token.",
    valid=at_least(1),
)
DELEGATION_TOKEN_EXPIRY_TIME_MS = security.int64(
    "delegation.token.expiry.time.ms",
    86_400_000,
    "Time after which a delegation token must be renewed.",
    valid=at_least(1),
)
DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS = security.int64(
    "delegation.token.expiry.check.interval.ms",
    3_600_000,
    "How often expired delegation tokens are removed.",
    valid=at_least(1),
    importance=LOW,
)
