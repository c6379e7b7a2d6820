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
# Requests of one connection handled before other connections have a turn: at 15 µs for a small one, some milliseconds.
REQUESTS_PER_TURN_MAX = 200
# The same as a time: a request that arrives this long after the first one waits for the next turn.
REQUESTS_PER_TURN_S = 0.010
# Connections that are tidied up before other work has a turn; each may have requests.
CONNECTIONS_TIDIED_PER_SLICE = 5
# Bytes of a connection's answers in memory (file ranges do not count) above which none of its requests are handled.
ANSWERS_HELD_BYTES_MAX = 1 * MIB
# Accepted sockets over all listeners; fewer if the process may have only few descriptors (`server/ports/system.py`).
CONNECTIONS_MAX = 50_000
# Connections waiting in the kernel for accept (socket.listen.backlog.size has Kafka's 50; bursts of clients need more).
LISTEN_BACKLOG_MAX = 1_024
# Connections accepted before existing connections have a turn.
ACCEPTS_PER_WAKEUP_MAX = 64
