"""Client connections: buffers, turns, waiting requests."""

from ottla.model.limits.units import KIB, MIB

# Requests of one connection that may wait for their answers; clients keep 5 produces and some fetches in flight. When
# the bound is reached, the connection is not read until an answer was sent, so TCP itself slows the client.
IN_FLIGHT_PER_CONNECTION_MAX = 64
# Default for queued.max.request.bytes when it is -1 (off in Kafka): bytes of all requests read but not yet answered.
QUEUED_REQUEST_BYTES_MAX = 512 * MIB
# One recv: big enough for a usual batch, small enough that an idle connection costs little.
RECEIVE_BUFFER_BYTES = 64 * KIB
# With less free room than this the receive buffer is compacted or grown first: tiny reads cost a system call each.
RECEIVE_READ_BYTES_MIN = 4 * KIB
# Bytes read from one connection before other connections have a turn, and before waiting fetches and produces are told
# of the batches in them.
RECEIVE_PER_TURN_BYTES = MIB
# The receive buffer that a connection to a leader keeps for the next answer; a larger one is released.
RECEIVE_KEPT_BYTES_MAX = 4 * MIB
# A grown receive buffer is released after this long without traffic.
BUFFER_KEEP_S = 5
# While other connections wait for memory, a connection is closed if its unfinished frame holds memory and arrives more
# slowly than this for STALLED_FRAME_S. The connection that may exceed the bound delays all others, so it must send 1
# MiB within some seconds.
RECEIVE_BYTES_PER_S_MIN = 256 * KIB
STALLED_FRAME_S = 5
# A file range up to this size is read and sent with its headers: one packet instead of three system calls.
INLINE_SLICE_BYTES_MAX = 16 * KIB
# iovec entries per sendmsg: Linux takes 1,024 (IOV_MAX).
SEND_VECTOR_MAX = 512
# Bytes gathered for one sendmsg, and so the most memory that small file ranges occupy while a peer reads slowly.
SEND_RUN_BYTES = 256 * KIB
# Bytes of file ranges sent to one connection before other connections have a turn: a millisecond or two.
SEND_PER_TURN_BYTES = 4 * MIB
# A file range is sent in steps of this size; before each step it is checked whether the step is in the page cache.
SEND_STEP_BYTES = 1 * MIB
# Over TLS a file range is read, encrypted and sent in steps of this size. A step that the peer does not take is read
# again.
TLS_SEND_STEP_BYTES = 256 * KIB
# The memory in which a listener receives what its connections then decrypt, one after the other: for an empty receive
# buffer, and a part of a record.
TLS_RECEIVE_BUFFER_BYTES = RECEIVE_BUFFER_BYTES + 32 * KIB
# Received bytes that OpenSSL is given at once, up to the end of a record. Each piece is handled in one go: 16 KiB of
# the smallest records take a millisecond, of changes of the keys five.
TLS_RECEIVE_BYTES = 16 * KIB
# The data of the largest record, and what may follow its header when that is encrypted.
TLS_RECORD_DATA_BYTES = 16 * KIB
TLS_RECORD_BYTES_MAX = TLS_RECORD_DATA_BYTES + 2 * KIB
# Bytes that are encrypted and sent in one go: the memory of a connection whose peer reads slowly.
TLS_ENCRYPT_BYTES = 64 * KIB
# Answers of TLS itself (to changes of the keys, say) that may wait for a peer that does not take them.
TLS_UNSENT_BYTES_MAX = TLS_ENCRYPT_BYTES + 16 * KIB
# TLS handshakes under way at once; further connections wait in the kernel's queue, or take the place of idle ones.
TLS_HANDSHAKES_MAX = 256
# The same for one address, so that one client does not hold all of them.
TLS_HANDSHAKES_PER_ADDRESS_MAX = 64
# An address with more of them loses one to another address at once when there are too many; the same number holds for
# clients of SASL listeners that have not authenticated yet.
TLS_HANDSHAKES_PER_ADDRESS_FAIR = 16
# A handshake whose client kept the node waiting for longer loses its place to any other one: some round trips.
TLS_HANDSHAKE_PATIENCE_S = 1.0
# The same until the client's hello was answered. It comes with the connection, and takes no round trip.
TLS_HELLO_PATIENCE_S = 0.2
# A client's hello is collected before it is judged, up to this size: with a certificate in its ticket it has a few KiB.
TLS_HELLO_BYTES_MAX = 16 * KIB
# When all handshakes are under way and none is idle, a listener looks for an idle one again after this time.
TLS_HANDSHAKES_LOOK_S = 0.05
# A handshake that takes longer is given up.
TLS_HANDSHAKE_S = 10
# Handshake steps (about a millisecond each) before other connections have a turn.
TLS_HANDSHAKE_STEPS_PER_TURN = 4
# A handshake step that took longer is slow; so many others make up for it. One for which nothing has made up yet,
# followed by another (a large RSA key, not a hiccup of the machine), has the listener take further steps in workers.
TLS_HANDSHAKE_STEP_MS_MAX = 5
TLS_HANDSHAKE_SLOW_STEP_WEIGHT = 8
# After this number of steps in workers the loop takes one itself again: the long steps may have been an exception.
TLS_HANDSHAKE_STEPS_IN_WORKERS = 200
# Requests of one connection handled before other connections have a turn: however little they cost.
REQUESTS_PER_TURN_MAX = 200
# The same as a time, which a quiet client waits for beside a flood: 2 ms tripled its p99, and saved no CPU time.
REQUESTS_PER_TURN_S = 0.0005
# A connection whose turn took longer than this, not counting time without a CPU, takes turns with other such
# connections: one of them is served in each turn of the loop, so that many connections of one client delay other
# clients no more than one does.
LIGHT_TURN_S = 0.0005
# One long turn counts for the next one only, as it may have been a hiccup; another one then for so many shorter turns
# in which the connection has handled requests.
LIGHT_TURNS_AGAIN = 5
# Connections that are tidied up before other work has a turn; each may have requests.
CONNECTIONS_TIDIED_PER_SLICE = 5
# Bytes of a connection's answers in memory (file ranges do not count) above which none of its requests are handled.
ANSWERS_HELD_BYTES_MAX = 1 * MIB
# Accepted sockets over all listeners; fewer if the process may have only few descriptors (`server/ports/system.py`).
CONNECTIONS_MAX = 50_000
# Connections waiting in the kernel for accept (socket.listen.backlog.size has Kafka's 50; bursts of clients need more).
LISTEN_BACKLOG_MAX = 1_024
# Connections accepted before existing connections have a turn: at 60 µs for each, a quarter of a millisecond.
ACCEPTS_PER_WAKEUP_MAX = 4
# Messages of one SASL exchange; the longest mechanisms need three.
SASL_MESSAGES_MAX = 10
# A connection of a SASL listener that has not authenticated after this time is closed.
AUTHENTICATION_S = 30
# Bytes of all unfinished frames of clients that have not authenticated; a large token has some 100 KB.
UNPROVEN_REQUEST_BYTES_MAX = 16 * MIB
# Connections that are closed at once for one that needs memory: over TLS each takes a quarter of a millisecond.
UNPROVEN_CLOSED_AT_ONCE = 8
# A connection that has not authenticated after this time is closed for a new one if the node is full.
UNPROVEN_PATIENCE_S = 2.0
# The decisions of the authorizer that one connection remembers, and the bytes of the names in them. A client usually
# works with few topics and groups; one that names more pays for new decisions. Python's dict needs some 100 bytes for
# each, so a connection keeps some 200 KB at most. The longest names of topics fit; longer names are not remembered.
DECISIONS_PER_CONNECTION_MAX = 1_000
DECISIONS_NAMES_BYTES_MAX = 128 * KIB
DECISION_NAME_BYTES_MAX = 2 * KIB
# The largest port of TCP.
PORT_MAX = 65_535
