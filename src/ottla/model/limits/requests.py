"""How much one request may name, and how much of a large one is handled in one slice."""

from ottla.model.limits.units import INT16_MAX, MIB

# Topics one request may name: each costs a lookup and an answer; Kafka's own tools stay far below.
TOPICS_PER_REQUEST_MAX = 100_000
# Partitions that one CreateTopics or CreatePartitions may create, over all its topics; Kafka's controller has the same
# bound.
PARTITIONS_PER_REQUEST_MAX = 10_000
# Partitions one topic may have: each is a directory with five files.
PARTITIONS_PER_TOPIC_MAX = 100_000
# Distinct tuples of replicas and directories that partitions share in memory; beyond that each partition keeps its own
# copy.
SHARED_TUPLES_MAX = 200_000
# Periodic elections (preferred leaders, unclean ones) in one turn, as in Kafka; the next turn follows at once.
ELECTIONS_PER_TURN_MAX = 1_000
# Delay of unclean elections after they are allowed for all topics: until then the controller itself has adopted the
# setting.
UNCLEAN_ELECTION_DELAY_MS = 500
# A topic of 10,000 partitions still fits one batch, hence one write; larger groups become a transaction of several.
# (Kafka lets one command write 10,000 records at most, but reads batches of any number: see test_kafka_metadata.)
RECORDS_PER_METADATA_BATCH_MAX = 20_000
# Partitions per page of DescribeTopicPartitions; the default of max.request.partition.size.limit.
DESCRIBE_PARTITIONS_MAX = 2_000
# Configuration resources and keys in one alter request.
CONFIG_RESOURCES_PER_REQUEST_MAX = 10_000
# A configuration value is written into a metadata record and into every snapshot.
CONFIG_VALUE_BYTES_MAX = INT16_MAX
# SCRAM credentials that one request may change; Kafka's controller writes as many records at once.
CREDENTIALS_PER_REQUEST_MAX = 10_000
# Bytes of the salt of a SCRAM credential: it is written into a metadata record and sent to all who try to log in.
# Kafka's tools make salts of some 26 bytes.
SCRAM_SALT_BYTES_MAX = 1_024
# Credentials and quotas that one slice decides: a credential takes three HMACs.
CREDENTIALS_PER_SLICE = 200
# Delegation tokens that one slice signs again, to find one or to describe them; and expired ones that are removed in
# one turn, the next of which follows at once.
TOKENS_PER_SLICE = 500
TOKENS_REMOVED_PER_TURN = 1_000
QUOTAS_PER_SLICE = 500
# Items that one slice of a large request handles (server/loop/slices.py, portions.py), some 10 ms of work: small items;
# partitions that may have to be opened first; groups and transactions with thousands of members.
ITEMS_PER_SLICE = 200
PARTITIONS_OPENED_PER_SLICE = 10
GROUPS_PER_SLICE = 5
# Members that leave one group: the group is rebalanced once per slice. Below: other kinds of items, each by its cost.
LEAVERS_PER_SLICE = 2_000
OFFSETS_PER_SLICE = 1_000
GROUPS_LISTED_PER_SLICE = 1_000
TRANSACTIONS_LISTED_PER_SLICE = 5_000
PARTITIONS_ADDED_PER_SLICE = 2_000
PRODUCERS_DESCRIBED_PER_SLICE = 5_000
SEGMENTS_DESCRIBED_MAX = 500  # of one partition; the newest
SEGMENTS_PARTITIONS_MAX = 100  # whose segments one request describes
RESOURCES_PER_SLICE = 20
RESOURCES_DESCRIBED_PER_SLICE = 10
PARTITIONS_PRODUCED_PER_SLICE = 50  # whose logs may have to be opened
# Bytes of batches for several partitions that are appended in one go; a batch for one of them is not divided. As many
# as usual clients send in one request (max.request.size).
BYTES_PRODUCED_PER_SLICE = MIB
PARTITIONS_CREATED_PER_SLICE = 500
PARTITIONS_DESCRIBED_PER_SLICE = 2_000
# Decisions of the authorizer, which looks at the ACLs of a resource for each.
DECISIONS_PER_SLICE = 1_000
PARTITIONS_FETCHED_PER_SLICE = 1_000
# Names that one slice sorts.
NAMES_SORTED_PER_SLICE = 10_000
# Records of the cluster's metadata that are decided, decoded, applied, propagated or written to a snapshot in one
# slice.
METADATA_RECORDS_PER_SLICE = 500
# A metadata snapshot of more partitions and ACLs than this is written in slices from a copy; a smaller one at once, in
# some 20 ms.
SNAPSHOT_AT_ONCE_PARTITIONS = 5_000
# Watches of clients' requests on one node at a time, and those that one principal asks for (or one address without
# authentication); how long one lasts after it was last asked for, and how many of the latest requests it keeps.
REQUEST_WATCHES_MAX = 8
REQUEST_WATCHES_PER_ASKER_MAX = 4
REQUEST_WATCH_S = 15
REQUESTS_SEEN_MAX = 500
# Characters of names, and different error codes, that are kept of one request.
REQUEST_SEEN_CHARS_MAX = 250
REQUEST_SEEN_ERRORS_MAX = 8
# Bytes up to which an answer of the controller is decoded for its error codes.
REQUEST_SEEN_ANSWER_BYTES_MAX = 65_536
# Connections of which the clients are listed, and clients in the list.
REQUEST_CLIENTS_CONNECTIONS_MAX = 5_000
REQUEST_CLIENTS_MAX = 500
