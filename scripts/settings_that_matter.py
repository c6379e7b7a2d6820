"""The settings to look at first, some forty of several hundred, each with the reason to change it."""

from typing import Any, Final

from ottla.model.setting import Setting
from ottla.model.settings import (
    authorizer,
    controller,
    groups,
    log,
    network,
    node,
    own,
    replication,
    sasl,
    security,
    transactions,
)
from ottla.model.topic_settings import (
    CLEANUP_POLICY,
    COMPRESSION_TYPE,
    MAX_MESSAGE_BYTES,
    MIN_INSYNC_REPLICAS,
    OTTLA_SCHEMA_VALIDATION,
    RETENTION_BYTES,
    RETENTION_MS,
    SEGMENT_BYTES,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)

# Title of a group → its settings and the reasons to change them.
THAT_MATTER: Final[dict[str, tuple[tuple[Setting[Any], str], ...]]] = {
    "Where a node runs": (
        (node.NODE_ID, "Every node of a cluster needs a number of its own."),
        (
            node.PROCESS_ROLES,
            "Small clusters have nodes with both roles; larger ones separate controllers from brokers.",
        ),
        (network.LISTENERS, "A node started without it serves this machine only; name an address to serve others."),
        (
            network.ADVERTISED_LISTENERS,
            "Clients connect to the address they are told: set it in containers, behind NAT, with several networks.",
        ),
        (log.LOG_DIRS, "Data belongs on a disk that survives a restart; several directories use several disks."),
        (node.BROKER_RACK, "With it, replicas are spread over racks or zones, and consumers can read from a near one."),
    ),
    "Which cluster it belongs to": (
        (controller.CONTROLLER_QUORUM_VOTERS, "Names the controllers of a cluster whose controllers never change."),
        (
            controller.CONTROLLER_QUORUM_BOOTSTRAP_SERVERS,
            "Names controllers to ask, where controllers may be added and removed.",
        ),
    ),
    "Who may connect, and do what": (
        (
            network.LISTENER_SECURITY_PROTOCOL_MAP,
            "Give a listener TLS (SSL), a login (SASL_PLAINTEXT) or both (SASL_SSL); PLAINTEXT has neither.",
        ),
        (
            network.SECURITY_INTER_BROKER_PROTOCOL,
            "Brokers talk to each other in plain text without it, or without `inter.broker.listener.name`.",
        ),
        (
            security.SSL_KEYSTORE_LOCATION,
            "Listeners with TLS need a certificate: a file with key and certificates, with `ssl.keystore.type=PEM`.",
        ),
        (
            security.SSL_CLIENT_AUTH,
            "With required, clients of SSL listeners need certificates, which say who they are (mutual TLS).",
        ),
        (
            sasl.SASL_ENABLED_MECHANISMS,
            "The ways to log in: SCRAM-SHA-512 keeps users in the cluster, OAUTHBEARER takes tokens of a provider.",
        ),
        (
            authorizer.AUTHORIZER_CLASS_NAME,
            "Without it every client that can connect may do everything; with it, what ACLs allow.",
        ),
        (authorizer.SUPER_USERS, "Names the administrators, and the nodes themselves, for whom no ACL is needed."),
    ),
    "What new topics get": (
        (node.NUM_PARTITIONS, "Partitions are what consumers of a group share; the default of one cannot be shared."),
        (node.DEFAULT_REPLICATION_FACTOR, "Set it to 3 in a cluster; with 1, a lost disk is lost data."),
        (node.AUTO_CREATE_TOPICS_ENABLE, "Switch it off where a misspelt name must not become a topic."),
    ),
    "How long data is kept": (
        (RETENTION_MS, "Keep records for longer or shorter than seven days; -1 keeps them for ever."),
        (RETENTION_BYTES, "Bound the disk space of a partition, whatever the age of its records."),
        (SEGMENT_BYTES, "Only closed segments are removed: smaller segments free space sooner, in smaller steps."),
        (CLEANUP_POLICY, "With compact, the last record of each key stays: tables, state, configuration."),
        (COMPRESSION_TYPE, "Store batches in one codec, whatever producers send; costs CPU time on the broker."),
        (MAX_MESSAGE_BYTES, "Accept larger batches; consumers and followers need memory for them, too."),
    ),
    "What an acknowledgement means": (
        (MIN_INSYNC_REPLICAS, "With 3 replicas and acks=all, 2 means that one broker may fail without loss."),
        (
            own.OTTLA_FSYNC_BEFORE_ACK,
            "Records survive a power failure of all replicas at once; each answer waits for a sync.",
        ),
        (
            UNCLEAN_LEADER_ELECTION_ENABLE,
            "Prefer availability to keeping every acknowledged record, for data that can be lost.",
        ),
        (replication.REPLICA_LAG_TIME_MAX_MS, "How soon a slow follower stops to delay producers with acks=all."),
        (controller.BROKER_SESSION_TIMEOUT_MS, "How soon a silent broker loses its partitions to others."),
    ),
    "Groups and transactions": (
        (
            groups.OFFSETS_TOPIC_REPLICATION_FACTOR,
            "Unset, committed offsets get as many replicas as there are brokers, 3 at most, with the first group.",
        ),
        (
            transactions.TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
            "The same for the state of transactions, when the first transaction begins.",
        ),
        (groups.OFFSETS_RETENTION_MINUTES, "Keep the offsets of groups that pause for more than a week."),
        (
            groups.GROUP_INITIAL_REBALANCE_DELAY_MS,
            "0 lets a consumer begin at once; more saves rebalances when many start together.",
        ),
        (
            transactions.TRANSACTION_MAX_TIMEOUT_MS,
            "Producers whose transactions take more than 15 minutes are refused.",
        ),
    ),
    "Load and records": (
        (network.MAX_CONNECTIONS, "Bound what clients that open too many connections can take."),
        (network.QUEUED_MAX_REQUEST_BYTES, "Memory that requests being read and handled may take together."),
        (OTTLA_SCHEMA_VALIDATION, "Let the broker refuse records that break the topic's registered schema."),
    ),
}
