"""The console."""

from ottla.model.limits.units import GIB, KIB, MIB

# Partitions of which one page asks the offsets and sizes, and how long it waits for them: a broker may be away.
CONSOLE_FIGURES_PARTITIONS_MAX = 5_000
CONSOLE_FIGURES_S = 8
# How many topics are kept for how long, because asking for them takes long.
CONSOLE_TOPICS_KEPT_MIN = 2_000
CONSOLE_TOPICS_KEPT_S = 5
# Partitions that are drawn, each as a bar.
CONSOLE_BARS_MAX = 64
# Records that are sampled for hot keys, and keys that are shown of them.
CONSOLE_SAMPLED_RECORDS = 5_000
CONSOLE_SAMPLED_KEYS = 20
# Bytes of a key or value that are decoded, how deep a value may be nested, and how many values of one a path looks at.
CONSOLE_DECODED_BYTES_MAX = 1 * MIB
CONSOLE_DEPTH_MAX = 64
CONSOLE_PATH_VALUES_MAX = 10_000
# Records of one page: how many, their bytes, partitions that are read together, and how long reading may take.
CONSOLE_RECORDS_MAX = 200
CONSOLE_RECORDS_BYTES_MAX = 32 * MIB
CONSOLE_BROWSED_PARTITIONS_MAX = 256
CONSOLE_READ_S = 10
# Bytes that one fetch of the console asks for, of all partitions of a broker and of one.
CONSOLE_FETCH_BYTES = 4 * MIB
CONSOLE_FETCH_PARTITION_BYTES = 512 * KIB
# Bytes of batches that a search looks at in one go, in a worker thread, and records that it finds before it ends.
CONSOLE_SEARCH_PORTION_BYTES = 256 * KIB
CONSOLE_HITS_MAX = 200
# Records at the end of a topic that the live tail looks at when it filters them.
CONSOLE_FILTERED_RECORDS = 500
# How long the console waits until a record that was typed is written.
CONSOLE_DELIVERY_MS = 15_000
# Partitions whose segments are drawn on one page, and segments of each.
CONSOLE_PARTITIONS_DRAWN_MAX = 12
CONSOLE_SEGMENTS_DRAWN_MAX = 80
# Sessions at a time, and those of one user; each has connections of its own. For a new one, the session of that user
# that was idle longest ends; of all users, one of the user who has most.
CONSOLE_SESSIONS_MAX = 200
CONSOLE_SESSIONS_PER_USER_MAX = 10
# After how long without a request a session ends, and how long it may last at all.
CONSOLE_SESSION_IDLE_S = 3_600
CONSOLE_SESSION_S = 12 * 3_600
# Messages to a user that wait for the next page.
CONSOLE_MESSAGES_MAX = 5
# Bytes of a form: to sign in (and whatever else those send who have not), and a record to produce, or a schema.
CONSOLE_SIGN_IN_BYTES_MAX = 8 * KIB
CONSOLE_FORM_BYTES_MAX = 2 * MIB
# Requests that the console works on at a time, for all users, and for one of them.
CONSOLE_REQUESTS_AT_ONCE_MAX = 256
CONSOLE_REQUESTS_PER_SESSION_MAX = 32
CONSOLE_REQUESTS_PER_USER_MAX = 64
# Requests of visitors without a session: more than there are passwords that wait for their check.
CONSOLE_STRANGERS_AT_ONCE_MAX = 512
# Threads of calls to the schema registry, of asking nodes for metrics and certificates, of reading the status of
# pipelines, of decoding records, of the doctor's checks, and of looking through very many rows.
CONSOLE_REGISTRY_THREADS = 8
CONSOLE_NODE_THREADS = 8
CONSOLE_BOARD_THREADS = 8
CONSOLE_DECODING_THREADS = 4
CONSOLE_EXAMINING_THREADS = 2
CONSOLE_ROWS_THREADS = 2
# How long a page may take; a search, which shows its progress, may take longer.
CONSOLE_PAGE_S = 30
CONSOLE_STREAM_S = 600
# Sending an answer: bytes of one part of it, how long the client may take for a part, and for the whole answer. Then
# the connection is ended.
CONSOLE_PART_BYTES = 64 * KIB
CONSOLE_SEND_S = 30
CONSOLE_ANSWER_S = 630
# Bytes of files (records, contents, schemas) that were not sent yet: of one user, and in all. A larger file waits until
# no other is being sent.
CONSOLE_UNSENT_USER_BYTES_MAX = 64 * MIB
CONSOLE_UNSENT_BYTES_MAX = 256 * MIB
# Rows of a table on one page.
CONSOLE_ROWS = 50
CONSOLE_ROWS_MAX = 500
# Characters of a key, value or header in a table, and bytes of one on a page of its own.
CONSOLE_CELL_CHARS = 200
CONSOLE_VALUE_BYTES_MAX = 256 * KIB
# The lag of how many groups is followed at a time for one user, how often, how many points of it are kept, for how long
# after somebody has looked, and how many topics of a group have a line of their own.
CONSOLE_LAG_GROUPS_MAX = 16
CONSOLE_LAG_EVERY_S = 2
CONSOLE_LAG_POINTS = 900
CONSOLE_LAG_IDLE_S = 120
CONSOLE_LAG_TOPICS_MAX = 7
# How long a group may be watched for an explanation; by default, and at most.
CONSOLE_EXPLAIN_S = 5
CONSOLE_EXPLAIN_S_MAX = 60
# Members and partitions of a topic up to which an assignment is drawn partition by partition, and topics on the page.
CONSOLE_MATRIX_MEMBERS_MAX = 40
CONSOLE_MATRIX_PARTITIONS_MAX = 64
CONSOLE_MATRIX_TOPICS_MAX = 30
# Entries of the audit log that are read for its page.
CONSOLE_AUDIT_ENTRIES = 2_000
# Of the overview: entries that one look reads, and changes that are kept.
CONSOLE_AUDIT_LOOKED_AT = 500
CONSOLE_AUDITED_CHANGES = 15
# Records of a dead-letter topic that one page of letters looks at, and their bytes; letters that are sent at a time,
# and for how long.
CONSOLE_LETTERS_LOOKED_AT = 2_000
CONSOLE_LETTERS_LOOKED_AT_BYTES = 64 * MIB
CONSOLE_LETTERS_SENT_MAX = 10_000
CONSOLE_LETTERS_SEND_S = 15
# Topics, and share groups, up to which all are asked whether they name a dead-letter topic.
CONSOLE_TOPICS_ASKED_MAX = 2_000
# How often the cluster is sampled for the overview while somebody looks, how many samples are kept (15 minutes), and
# how long after the last look sampling ends. Groups and settings are read less often, and sampling never takes more
# than a part of the time.
CONSOLE_SAMPLE_S = 5
CONSOLE_SAMPLES = 180
CONSOLE_UNWATCHED_S = 60
CONSOLE_SLOW_EVERY = 3
CONSOLE_SAMPLING_PART = 4
# What has changed in the cluster, and of how many topics the settings are compared.
CONSOLE_CHANGES = 200
CONSOLE_COMPARED_TOPICS = 100
# Groups whose lag is drawn, and requests by API that are kept of a sample.
CONSOLE_DRAWN_GROUPS = 6
CONSOLE_APIS = 60
# How often the cluster is examined (`ottla doctor`) while somebody looks at the overview.
CONSOLE_EXAMINE_S = 60
# Plans of moves that were shown and may be carried out, for how long, and the moves of one that are listed.
CONSOLE_PLANS = 4
CONSOLE_PLAN_S = 900
CONSOLE_PLAN_MOVES = 200
# Moves under way that are listed, and how many may be begun at a time.
CONSOLE_LISTED_MOVES = 100
CONSOLE_MOVES_AT_ONCE_MAX = 1_000
# How long the end of a session waits for its parts: a plan takes its throttle off, for 10 s at most.
CONSOLE_CLOSE_S = 12
# How long the traffic of partitions is measured for a plan.
CONSOLE_MEASURED_S = 10
# How often the page of a client's requests is renewed, and how many of them it shows.
CONSOLE_REQUESTS_EVERY_S = 2
CONSOLE_REQUESTS_SHOWN = 200
# What DuckDB may use for one confined query, and its threads.
SQL_CONFINED_DUCKDB_BYTES = 512 * MIB
SQL_CONFINED_THREADS = 2
# What the process of a confined query may use in all: DuckDB, Arrow, the client's buffers, and Python itself.
SQL_PROCESS_BYTES = 2 * GIB
# One part of an answer: rows of a table, or bytes of a file.
SQL_FRAME_BYTES_MAX = 64 * MIB
# Bytes of a file in one part, and those that the console reads ahead of what it has sent.
SQL_PART_BYTES = 1 * MIB
SQL_READ_AHEAD_BYTES = 1 * MIB
# A file of rows.
SQL_EXPORT_ROWS_MAX = 1_000_000
SQL_EXPORT_BYTES_MAX = 512 * MIB
# Queries of the console: for all its users and for one of them at a time, how long they may take, and their rows.
SQL_AT_ONCE_MAX = 4
SQL_PER_USER_MAX = 2
SQL_S = 25
SQL_EXPORT_S = 300
SQL_ROWS = 100
SQL_ROWS_MAX = 1_000
# Columns of a result that is shown, its cells in all, and those of one part of it, which the console handles at a time.
SQL_COLUMNS_MAX = 500
SQL_CELLS_MAX = 100_000
SQL_FRAME_CELLS_MAX = 5_000
# Characters of a query, which is a part of the page's address.
SQL_QUERY_CHARS_MAX = 8_000
# Totals of a topic: records of each partition that are read unless the visitor says otherwise, and at most; how often
# the page is renewed; and fields of a schema that are offered.
CONSOLE_TOTALS_LAST = 100_000
CONSOLE_TOTALS_LAST_MAX = 10_000_000
CONSOLE_TOTALS_EVERY_S = 15
CONSOLE_TOTALS_FIELDS_MAX = 100
# What a chart shows of a result.
SQL_BARS_MAX = 40
SQL_POINTS_MAX = 1_000
