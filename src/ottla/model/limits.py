"""Every bound of the system, by name, each with its reason.

Rules:
- No queue, batch, session table, cache or retry without a bound from here (or from a setting whose default is here).
- A bound that operators may want to move is a setting; the constant is then its default or its ceiling.
- Units last: `_BYTES`, `_MS`, `_COUNT` (plural nouns count themselves).
"""

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308

# --- frames and fields ------------------------------------------------------------------------------------------

# Default of socket.request.max.bytes: a length prefix above it closes the connection before anything is allocated.
REQUEST_FRAME_BYTES_MAX = 100 * MIB
# What our own client accepts from a broker: one answer may hold a batch larger than fetch.max.bytes, never this much.
RESPONSE_FRAME_BYTES_MAX = 1 * GIB
# Before a connection is authenticated there is no reason to send more than a handshake (sasl.server.max.receive.size).
REQUEST_FRAME_BYTES_BEFORE_AUTH_MAX = 512 * KIB
# An unsigned varint of 32 bits has at most 5 bytes, one of 64 bits at most 10: a longer one is an attack or a bug.
VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
# An array element takes at least one byte, so `remaining` bounds the count too; this bounds element types of no size.
ARRAY_ELEMENTS_MAX = 16 * 1024 * 1024
# Elements of all lists of a request together. What an element costs (a microsecond, some hundred bytes of memory) has
# little to do with its bytes on the wire: a larger request closes the connection.
REQUEST_ELEMENTS_MAX = 250_000
# A request of more elements is decoded in steps of so many, a large answer encoded in them: some milliseconds each.
ELEMENTS_AT_ONCE_MAX = 5_000
ELEMENTS_PER_STEP = 5_000
# Tagged fields are few in every known message; thousands would only burn time.
TAGGED_FIELDS_MAX = 1024
# Strings carry int16 lengths in the classic encoding, and no field of Kafka needs more in the compact one.
STRING_BYTES_MAX = INT16_MAX
# The text of an error may repeat a name the client sent, and must still fit into a string of the answer (as UTF-8).
ERROR_TEXT_CHARS_MAX = 4_096

# --- requests ---------------------------------------------------------------------------------------------------

# Topics one request may name: each costs a lookup and an answer; Kafka's own tools stay far below.
TOPICS_PER_REQUEST_MAX = 100_000
# Partitions over all topics of one CreateTopics: all of them become records of one atomic append.
PARTITIONS_PER_REQUEST_MAX = 200_000
# Partitions one topic may have: each is a directory with five files.
PARTITIONS_PER_TOPIC_MAX = 100_000
# Sets of replicas and directories that partitions share in memory; of more different ones each keeps its own.
SHARED_TUPLES_MAX = 200_000
# Elections by the clock (preferred leaders, unclean ones) in one turn, as Kafka's; the next turn follows at once.
ELECTIONS_PER_TURN_MAX = 1_000
# When unclean elections are allowed for all topics: until the controller itself has followed its new settings.
UNCLEAN_ELECTION_DELAY_MS = 500
# A topic of 10,000 partitions still fits one batch, hence one write; larger groups become a transaction of several.
# (Kafka lets one command write 10,000 records at most, but reads batches of any number: see test_kafka_metadata.)
RECORDS_PER_METADATA_BATCH_MAX = 20_000
# DescribeTopicPartitions pages; same default as max.request.partition.size.limit.
DESCRIBE_PARTITIONS_MAX = 2_000
# Configuration resources and keys in one alter request.
CONFIG_RESOURCES_PER_REQUEST_MAX = 10_000
# A configuration value is written into a metadata record and into every snapshot.
CONFIG_VALUE_BYTES_MAX = INT16_MAX

# What one slice of a large request does (server/slices.py, portions.py), some 10 ms of work: small items; what may
# have to be opened first; groups and transactions with thousands of members; resources whose settings are told or set.
ITEMS_PER_SLICE = 200
PARTITIONS_OPENED_PER_SLICE = 50
GROUPS_PER_SLICE = 5
RESOURCES_PER_SLICE = 20
PARTITIONS_CREATED_PER_SLICE = 500
PARTITIONS_DESCRIBED_PER_SLICE = 2_000
PARTITIONS_FETCHED_PER_SLICE = 1_000
# A snapshot of the cluster with more partitions than this is written piece by piece, of a copy: some 20 ms are no harm.
SNAPSHOT_AT_ONCE_PARTITIONS = 5_000

# --- connections ------------------------------------------------------------------------------------------------

# Requests of one connection that may wait for their answers; clients keep 5 produces + some fetches in flight. When
# reached, the connection is not read until an answer left, so TCP itself slows the sender.
IN_FLIGHT_PER_CONNECTION_MAX = 64
# Default for queued.max.request.bytes when it is -1 (off in Kafka): bytes of all requests read but not yet answered.
QUEUED_REQUEST_BYTES_MAX = 512 * MIB
# One recv: big enough for a usual batch, small enough that an idle connection costs little.
RECEIVE_BUFFER_BYTES = 64 * KIB
# Less free room than this and the receive buffer is tidied or grown first: tiny reads cost a system call each.
RECEIVE_READ_BYTES_MIN = 4 * KIB
# A frame up to this size gets its buffer at once; a larger one must send bytes to earn memory (it doubles).
RECEIVE_EAGER_BYTES = 4 * MIB
# What is read from one connection before the others have their turn, and before those who wait for it are told.
RECEIVE_PER_TURN_BYTES = MIB
# What the connection to a leader keeps for the next answer; more is given back.
RECEIVE_KEPT_BYTES_MAX = 4 * MIB
# A grown receive buffer is given back after this long without traffic.
BUFFER_KEEP_S = 5
# An unfinished frame that holds memory others wait for is dropped after this long without a byte.
STALLED_FRAME_S = 15
# A file range up to this size is read and sent with its headers: one packet instead of three system calls.
INLINE_SLICE_BYTES_MAX = 16 * KIB
# iovec entries per sendmsg: Linux takes 1,024 (IOV_MAX).
SEND_VECTOR_MAX = 512
# Bytes gathered for one sendmsg, and so the most that small file ranges occupy while a peer is slow to take them.
SEND_RUN_BYTES = 256 * KIB
# File ranges sent to one connection before the others have their turn: a millisecond or two.
SEND_PER_TURN_BYTES = 4 * MIB
# Requests of one connection handled before the others have their turn: at 15 µs for a small one, some milliseconds.
REQUESTS_PER_TURN_MAX = 200
# Answers of one connection that are in memory (file ranges are not) before no more of its requests are handled.
ANSWERS_HELD_BYTES_MAX = 1 * MIB
# Accepted sockets over all listeners; below the usual descriptor limit together with OPEN_FILES_MAX.
CONNECTIONS_MAX = 50_000
# Connections waiting in the kernel for accept (socket.listen.backlog.size has Kafka's 50; bursts of clients need more).
LISTEN_BACKLOG_MAX = 1_024
# Connections accepted before those that are there have their turn.
ACCEPTS_PER_WAKEUP_MAX = 64

# --- between nodes ----------------------------------------------------------------------------------------------

# A node of the same cluster accepts a connection at once, or something is wrong with it.
PEER_CONNECT_MS = 5_000
# Pause after a connection to another node could not be made; doubles, but stays below what a restart takes.
PEER_RECONNECT_MS = 20
PEER_RECONNECT_MS_MAX = 500
# Addresses (and purposes) that a node keeps a connection to, or the memory of one.
PEER_LINKS_MAX = 5_000
# How long the active controller is looked for on behalf of somebody who named no time of their own.
CONTROLLER_ANSWER_MS = 30_000
# Pause before it is asked again when it did not know that it is the controller, or could not be reached.
CONTROLLER_RETRY_MS = 50
# Whether a broker whose connection broke still listens: on the same network that is known at once.
PROBE_MS = 500
# A stopping broker waits this long for its partitions to be led by others; then it stops all the same.
CONTROLLED_SHUTDOWN_MS = 60_000
# Heartbeats of a broker that waits for the controller's word are more frequent than broker.heartbeat.interval.ms.
LEAVING_HEARTBEAT_MS = 50
# A stopping broker to whom no controller answers for so long stops at once: the others are stopping, too.
LEAVING_ANSWER_MS = 2_000
FENCED_HEARTBEAT_MS = 50
# Before a registration that was refused for now (a former life's session has not ended) is asked for again.
REGISTRATION_RETRY_MS = 200

# --- fetch ------------------------------------------------------------------------------------------------------

# max.incremental.fetch.session.cache.slots (KIP-227).
FETCH_SESSIONS_MAX = 1_000
# A session idle for less than this is not evicted for an equal one (KIP-227's rule).
FETCH_SESSION_EVICTION_MS = 120_000
# Partitions one session may hold: memory per session is bounded with it.
FETCH_SESSION_PARTITIONS_MAX = 1_000_000
# Partitions that one member of a share group reads: there may be thousands of such sessions, so each is kept small.
SHARE_SESSION_PARTITIONS_MAX = 10_000
# fetch.max.bytes of the broker.
FETCH_BYTES_MAX = 55 * MIB
# Parked long polls, acks=all produces and coordinator replies over the whole node.
WAITERS_MAX = 200_000
# Partitions that a poll waits for without reserving memory (of queued.max.request.bytes); what each takes of more.
PARKED_KEYS_FREE = 16
PARKED_KEY_BYTES = 1 * KIB
# A client may ask for any timeout; nobody waits longer than this for a produce, fetch or admin answer.
WAIT_MS_MAX = 30 * 60_000

# --- share groups -----------------------------------------------------------------------------------------------

# Records of one share partition that wait for their time (delayed delivery); behind so many nothing is handed out.
# Each may be a range of its own in the stored state, which must fit into one record.
SHARE_DELAYED_RECORDS_MAX = 10_000
# Bytes of records that are looked at (keys, delays) for one fetch, and records of one batch: some ten milliseconds.
SHARE_INSPECT_BYTES = 1 * MIB
SHARE_INSPECT_RECORDS = 10_000
# Stretches of markers and aborted transactions skipped by one fetch before the others have their turn.
SHARE_SKIPS_PER_FETCH_MAX = 64
# A batch of dead letters is closed when it has this many bytes of records.
DEAD_LETTER_BATCH_BYTES = 512 * KIB
# What the provenance adds to a dead letter at most: topic and group have limited names, the rest are numbers.
DEAD_LETTER_PROVENANCE_BYTES = 64 * KIB
# Batches of dead letters that wait for the leader of their partition, another node.
DEAD_LETTER_BATCHES_WAITING_MAX = 64

# --- record batches ---------------------------------------------------------------------------------------------

# Default of message.max.bytes / max.message.bytes (1 MiB + the batch's 12-byte prefix).
BATCH_BYTES_MAX = 1 * MIB + 12
# What one compressed batch may unpack to: a guard against decompression bombs, far above what producers send.
DECOMPRESSED_BATCH_BYTES_MAX = 256 * MIB
# Produces to topics whose records the broker looks at (compacted ones, those with a codec or a contract of their own):
# what the batches of one request may unpack to, or so many times their own size if that is more; and their records.
LOOKED_INTO_BYTES_MAX = 64 * MIB
LOOKED_INTO_RATIO_MAX = 8
LOOKED_INTO_RECORDS_MAX = 250_000
# A worker looks at so many records between two pauses (some 2 ms; where it reads their payloads: at so many), or packs
# so many bytes, and does not let batches that unpack to no more than this wait for larger ones.
LOOKED_AT_ONCE_RECORDS = 1_000
CHECKED_AT_ONCE_RECORDS = 64
PACKED_AT_ONCE_BYTES = 256 * KIB
LOOKED_INTO_SOON_BYTES = 1 * MIB
# A batch up to this size, packed and unpacked, is looked into on the loop, where that costs less than a worker would;
# what one turn of the loop may have of that (some 10 ms), and what a record, and unpacking, counts at least.
LOOKED_AT_HERE_PACKED_BYTES = 16 * KIB
LOOKED_AT_HERE_BYTES = 128 * KIB
LOOKED_AT_PER_TURN_BYTES = 512 * KIB
LOOKED_AT_RECORD_BYTES = 128
LOOKED_AT_UNPACKED_BYTES = 32 * KIB
# Up to this size the records of a batch that are dated too far ahead are named; of others only the header is told.
DATED_BYTES_MAX = 2 * KIB

# --- replication ------------------------------------------------------------------------------------------------

# First pause of a follower, or of one partition, after a failure; doubled up to replica.fetch.backoff.ms.
REPLICA_RETRY_MS = 10
# Before an AlterPartition that failed as a whole is sent again.
ALTER_PARTITION_RETRY_MS = 50
# Replicas whose directory is told in one AssignReplicasToDirs (Kafka's number), and the pause after a failure.
ASSIGNMENTS_PER_REQUEST_MAX = 2_250
ASSIGNMENT_RETRY_MS = 50
ASSIGNMENT_RETRY_MS_MAX = 10_000
# Topics that clients asked for and that are being created; who asks for more at once has to ask again.
TOPICS_BEING_CREATED_MAX = 10_000
# Replicas that may come and were told where to go; the oldest is forgotten for a new one.
PREFERRED_DIRECTORIES_MAX = 10_000
# Bytes copied at a time when a replica moves to another data directory.
LOG_DIR_COPY_BYTES = MIB

# --- idempotent producers ---------------------------------------------------------------------------------------

# Batches remembered per producer and partition, hence max.in.flight.requests.per.connection <= 5 for clients.
BATCHES_PER_PRODUCER = 5
# Headers that are read back for that at the end of a log that is opened: a few milliseconds.
RECALL_BATCHES_MAX = 512
# Producers that were silent for so long before the last one wrote have nothing under way (delivery.timeout.ms).
RECALL_MS = 120_000
# Producers remembered per partition. Kafka has no bound but time (producer.id.expiration.ms); a flood of one-shot
# producers must not grow without end, so the longest idle go first.
PRODUCERS_PER_PARTITION_MAX = 100_000
# Ids handed out per AllocateProducerIds record.
PRODUCER_ID_BLOCK_SIZE = 1_000

# --- storage ----------------------------------------------------------------------------------------------------

# Descriptors kept open over all segments and indexes (default of ottla.open.files.max): leaves room for connections
# below the common soft limit of 65,536 and works with many thousand partitions.
OPEN_FILES_MAX = 8_192
# Bytes read around an index position to find a batch header: the index is exact to 4 KiB (index.interval.bytes).
INDEX_READ_BYTES = 8 * KIB
# One read of a scan (recovery, verify, compaction).
SCAN_READ_BYTES = 1 * MIB
# Partitions nobody has asked for yet that upkeep opens at one turn: some milliseconds of work, twenty times a second.
PARTITIONS_OPENED_PER_TURN = 20
# Partitions that upkeep looks at between two turns of the loop: about a millisecond.
PARTITIONS_VISITED_PER_TURN = 200
# Directories of deleted partitions that are removed by one job of a worker thread; a stop waits for such a job.
DIRECTORIES_REMOVED_AT_ONCE = 50
# Threads for blocking work: fsync, compaction, recovery, big codecs.
WORKER_THREADS_MAX = 4
# Aborted transactions in one answer to a read_committed fetch: about 20 ms of work. More make its records fewer.
ABORTED_PER_FETCH_MAX = 10_000
# Blocks of a transaction index that one such fetch reads for the first time (see `log.committed`): about 20 ms.
ABORTED_BLOCKS_LEARNED_MAX = 600
# A log's producers are marked (see `log.marks`) every so many bytes: cutting its end off reads at most these again. Of
# the smallest batches they are 8,000, about 25 ms of work.
MARK_INTERVAL_BYTES = 512 * KIB
# Marks that are kept, and producers' states with them: a few kilobytes for most partitions, 20 MiB at the most.
MARKS_MAX = 8
MARKED_STATES_MAX = 16_384
# Records decoded in one go: enough to make the rest cheap, few enough that a hostile batch cannot fill the memory.
RECORDS_DECODED_AT_ONCE_MAX = 1_024
# When what a coordinator's timer wanted could not be written, it is tried again after this long.
TIMER_RETRY_MS = 1_000
# What the time of day may differ by from one that nobody sets before it counts as set.
CLOCK_STEP_MS = 500
# What a coordinator reads of its journal in one turn of the loop when it is loaded: some ten milliseconds.
COORDINATOR_LOAD_BYTES = 256 * KIB
# How soon a coordinator is loaded again whose journal could not be opened or read.
COORDINATOR_RETRY_MS = 1_000
# A new member's parked JoinGroup is given up after this: it cannot send heartbeats yet, and may be long gone.
NEW_MEMBER_JOIN_MS_MAX = 5 * 60 * 1000
# Static members that are all away keep their group in a rebalance; how soon it is looked at again, whatever rebalance
# timeout they asked for (it may be 0).
ABSENT_MEMBERS_WAIT_MS_MIN = 1_000
# Member ids given out by one group that nobody has come back with. Clients come back at once; if more are given out the
# oldest is forgotten, so that a flood of first joins costs no more than this.
PENDING_MEMBERS_MAX = 5_000
# Ids that members of share groups choose themselves: room for a UUID as Java prints it; Kafka's bound.
SHARE_MEMBER_ID_CHARS_MAX = 36
# Records that a coordinator writes for many at once (expired offsets, deleted topics, snapshots of quiet partitions)
# are written in portions, so that each stays well below the largest batch a log takes.
JOURNAL_PORTION_BYTES = 256 * KIB
# Transactions that one look of the clock aborts or forgets: their records are one batch, which must fit a segment.
TRANSACTIONS_PER_SWEEP_MAX = 1_000
# How old what is known of schemas may be where another node leads their topic; doubts about them that are remembered.
SCHEMAS_STALE_MS = 1_000
# What is read of `_schemas` in one turn: some ten milliseconds' worth.
SCHEMAS_SLICE_BYTES = 256 * KIB
SCHEMA_DOUBTS_MAX = 10_000
# How often a command that needs a producer id is tried when others were quicker to take the new ones.
PRODUCER_ID_ATTEMPTS_MAX = 3
# How long somebody who asks for a coordinator waits for its topic to be made, before they are told to ask again.
INTERNAL_TOPIC_WAIT_MS = 1_000
# How long a change of a transaction waits to be on all replicas that are in sync.
TRANSACTION_WRITE_MS_MAX = 30_000
# How long a broker waits for another's answer about a transaction or a share group.
COORDINATOR_REQUEST_MS = 30_000
# What one such request holds at most: markers, transactions, share partitions.
OUTBOX_ITEMS_MAX = 2_000
# How often, and after which growing pause, the state of a share partition is asked for where it has just moved.
SHARE_STATE_ATTEMPTS_MAX = 10
SHARE_STATE_RETRY_MS = 50
SHARE_STATE_RETRY_MS_MAX = 1_000
# How long a marker waits to be on all replicas that are in sync, before it is written again.
MARKERS_WAIT_MS_MAX = 20_000
# How soon markers that could not be written are tried again.
MARKERS_RETRY_MS = 500
# A regular expression that strangers send: how deeply it nests, the steps of its program (making one takes some 40 ms),
# the states and ways between them that are remembered (some MB), the work of one search over all names (steps that are
# looked at, about a second's worth, in slices of some milliseconds), that of a search which is done in one go, and how
# many programs are kept.
REGEX_DEPTH_MAX = 100
REGEX_STEPS_MAX = 20_000
REGEX_MEMORY_MAX = 50_000
REGEX_WORK_MAX = 2_000_000
REGEX_WORK_PER_STEP = 10_000
REGEX_WORK_AT_ONCE_MAX = 50_000
REGEX_PATTERNS_MAX = 100
# Hashes of topics that are kept; computing one anew costs about a microsecond per partition.
TOPIC_HASHES_MAX = 10_000
# Hashes of names of groups and transactional ids that are kept.
KEY_HASHES_MAX = 10_000
# Queries of Spark's own connector whose fetches are noted, and partitions of each.
SPARK_READERS_MAX = 1_000
SPARK_PARTITIONS_NOTED_MAX = 100_000
# Leader epochs kept per partition: one per election; older than the log start are dropped anyway.
EPOCHS_PER_PARTITION_MAX = 100_000

# --- schemas ----------------------------------------------------------------------------------------------------

# How deeply a schema's JSON nests: what walks it recurses.
SCHEMA_DEPTH_MAX = 100
# Pairs of types that one comparison looks at (a second or two), and differences that it reports.
SCHEMA_PAIRS_MAX = 50_000
SCHEMA_DIFFERENCES_MAX = 1_000
# What is wrong with a record, as a header or in an answer (some hundred thousand fit one batch), and how many of a
# refused batch are told.
RECORD_FAULT_CHARS_MAX = 300
RECORD_FAULTS_TOLD_MAX = 1_000
# Payloads that the broker checks by their schemas; a few bytes must not keep it busy. Avro: how deep one nests, steps
# per byte, and how many fields without bytes a schema may have before payloads are walked through with these bounds.
AVRO_DEPTH_MAX = 500
AVRO_STEPS_PER_BYTE_MAX = 100
AVRO_WEIGHTLESS_MAX = 100
# JSON: keywords that are applied per byte, and to the smallest payload (a keyword takes some microseconds).
JSON_STEPS_PER_BYTE_MAX = 10
JSON_STEPS_MIN = 1_000

# --- client -----------------------------------------------------------------------------------------------------

# Bytes of records (unpacked) in one Arrow batch: its columns count with 32 bits.
ARROW_BYTES_MAX = 1 * GIB
# Bytes of batches, as fetched, that are gathered for one Arrow batch: unpacked they are to stay below that bound.
ARROW_GATHERED_BYTES_MAX = 8 * MIB
# Bytes of records (unpacked) that are handed to Spark at once: the JVM holds them outside its heap.
SPARK_BATCH_BYTES_MAX = 32 * MIB
# Topics whose metadata a client keeps; one that touches more asks again for those it left longest ago.
CLIENT_TOPICS_MAX = 100_000
# Partitions one hot key is spread over, keys watched for being hot, and keys that may be found so by one producer.
SALT_SHARDS_MAX = 1_024
HOT_KEY_COUNTERS_MAX = 100_000
HOT_KEYS_FOUND_MAX = 1_000
# Records that a merge of salted keys holds back for an earlier one, and keys and producers it remembers.
SALTED_RECORDS_HELD_MAX = 100_000
SALTED_SOURCES_MAX = 10_000
# Keys whose partition a producer remembers, and how long they may be: hashing costs more than looking up.
HASHED_KEYS_REMEMBERED = 16_384
HASHED_KEY_BYTES_MAX = 64

# --- HTTP services ----------------------------------------------------------------------------------------------

# Bytes of a request's body: a schema is stored as one record, and records above max.message.bytes are refused anyway.
HTTP_BODY_BYTES_MAX = 8 * MIB
# Bytes of all bodies that one service holds.
HTTP_BODIES_BYTES_MAX = 256 * MIB
# Requests (and idle connections) that one service has open at a time; the others are told to come back (503).
HTTP_REQUESTS_AT_ONCE_MAX = 10_000
# Connections that wait to be accepted.
HTTP_BACKLOG = 1_024
# Requests that a registry has under way to the leader, and the answer to one of them.
FORWARDED_REQUESTS_MAX = 16
FORWARDED_ANSWER_BYTES_MAX = 8 * MIB
# What an instance says of itself in the group: a host, a port and a few words.
REGISTRY_IDENTITY_BYTES_MAX = 4 * KIB

# --- observation ------------------------------------------------------------------------------------------------

# A callback of the event loop that runs longer is logged and counted (default of ottla.stall.limit.ms). Everybody waits
# meanwhile; the goal, which tests/stalls holds every request to, is half of it in CPU time.
STALL_MS = 100
# Stalls are logged no more often than this, counted by name for so many names, and told before their end after so long.
STALL_LOG_INTERVAL_MS = 10_000
STALL_NAMES_MAX = 1_000
STALL_CRY_MS = 5_000
# A garbage collection that took longer: what it has looked at is not looked at again.
COLLECTION_MS_MAX = 10
# A log line is cut here, so that a hostile name or a huge repr cannot fill the disk.
LOG_LINE_CHARS_MAX = 4_096

# --- schema registry --------------------------------------------------------------------------------------------

# A subject's name is part of a record's key and of URLs; topic names end at 249.
SUBJECT_NAME_CHARS_MAX = 1_024
# A schema is one record of `_schemas`, escaped as JSON, beside its metadata; topics take messages of 1 MiB unless told.
SCHEMA_TEXT_CHARS_MAX = 1_000_000
# References are followed to parse a schema: so many of one schema, so deep.
REFERENCES_PER_SCHEMA_MAX = 1_000
REFERENCES_DEPTH_MAX = 64
# Parsed schemas that are kept, and how long their texts are together (parsed they take tens of times that); parsing one
# again costs milliseconds.
SCHEMAS_PARSED_REMEMBERED = 1_000
SCHEMAS_PARSED_CHARS_MAX = 8 * MIB
# A record of `_schemas` that a registry cannot take in is tried again after so long.
REGISTRY_UNREADABLE_RETRY_MS = 60_000
# An older schema is part of the message that a newer one does not fit it, cut here as Confluent does.
OLD_SCHEMA_SHOWN_CHARS_MAX = 10 * KIB
# Segments of a path and parameters of a request: the API needs fewer than ten of either.
PATH_SEGMENTS_MAX = 32
QUERY_PARAMETERS_MAX = 1_000
# Names of rules, as Confluent bounds them.
RULE_NAME_CHARS_MAX = 256

# --- schemas: Protobuf ------------------------------------------------------------------------------------------

# The text of a .proto file (or its base64 form): protoc's own descriptor.proto has 60 KB.
PROTOBUF_TEXT_CHARS_MAX = 4 * MIB
# Messages in messages, and values in values of options: protoc's bound. Also what message indexes of a frame may have.
PROTOBUF_DEPTH_MAX = 32
# The largest number of a field: a tag has 3 bits for the wire type, and 29 for the field.
PROTOBUF_FIELD_NUMBER_MAX = 2**29 - 1
# Columns that one schema may become: types used in many places multiply, and every column takes its part of the arena.
COLUMNS_MAX = 4_096
# Items that take no bytes (nulls, empty records) in all arrays of one value: without a bound ten bytes could ask for
# memory without end.
ITEMS_OF_NO_SIZE_MAX = 65_536

# --- Spark ------------------------------------------------------------------------------------------------------

# Rows of a task that are gathered before they become record batches: enough for full batches of many partitions.
SPARK_GATHERED_BYTES = 8 * MIB
SPARK_GATHERED_ROWS = 100_000
# Record batches of the Spark sink unless told otherwise: rows come in thousands, so nobody waits for them to fill.
SPARK_BATCH_BYTES = 256 * KIB
# How long a task's transaction may wait for the driver: what brokers allow at most by default.
SPARK_TRANSACTION_TIMEOUT_MS = 900_000
# The driver's own transactions are one record long. Another sink's may hold up the reading of the log for so long.
SPARK_DECISION_TIMEOUT_MS = 30_000
# What one of these may be before it is packed: the parts of some 60,000 tasks.
SPARK_DECISION_BYTES_MAX = 16 * MIB
# Transactions that the driver ends at the same time.
SPARK_ENDS_AT_ONCE_MAX = 32
# What our client keeps of a schema registry: schemas by id and version; most jobs use a handful.
REGISTRY_SCHEMAS_CACHED_MAX = 1_000
# An answer of a schema registry: schemas are texts of kilobytes.
REGISTRY_ANSWER_BYTES_MAX = 64 * MIB
# References, theirs included, that one schema may need: more is a circle or an attack.
REGISTRY_REFERENCES_MAX = 1_000
# Decoders of different schemas that a task keeps ready, for keys and for values.
DECODERS_KEPT_MAX = 500

# --- raft -------------------------------------------------------------------------------------------------------

# How long a leader of the quorum holds back an empty answer to a fetch.
RAFT_FETCH_WAIT_MS_MAX = 500
# Voters whose leader's process is gone stand for election one after the other, so that they do not split the votes.
RAFT_STAGGER_MS = 15
# The first wait after an election without a winner; doubled with each further one.
RAFT_ELECTION_BACKOFF_MS = 20
# Replicas of the journal, observers included, that a leader keeps in mind.
RAFT_REPLICAS_MAX = 10_000
# Epochs up to the first are believed of anybody; above, only those that are not far from one's own.
RAFT_EPOCH_ANY_MAX = 2**30
RAFT_EPOCH_LEAP_MAX = 1_000
# When a voter in doubt that knows no leader says so in its log, and how often then.
RAFT_DOUBT_FIRST_MS = 5_000
RAFT_DOUBT_TELL_MS = 30_000

# --- balancer ---------------------------------------------------------------------------------------------------

# Exchanges of replicas, or of leaders, that one plan may ask for: another run finds what is left.
BALANCE_EXCHANGES_MAX = 10_000
# Quiet partitions that are looked at for each busy one.
BALANCE_CANDIDATES_MAX = 16
# An observer that did not fetch for so long is not shown any more.
RAFT_OBSERVER_MS_MAX = 300_000
# How often a fresh node asks for the cluster it is to join.
JOIN_RETRY_MS = 500
# A server.properties that is larger is none.
SETTINGS_FILE_BYTES_MAX = 4 * MIB
# A node without a working disk: how often it looks for one, and what must fit on it.
DISK_PROBE_INTERVAL_MS = 1_000
DISK_PROBE_BYTES = 16 * MIB
