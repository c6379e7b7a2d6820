"""Connections of clients: buffers, turns, what waits."""

from ottla.model.limits.units import KIB, MIB

# Requests of one connection that may wait for their answers; clients keep 5 produces + some fetches in flight. When
# reached, the connection is not read until an answer left, so TCP itself slows the sender.
IN_FLIGHT_PER_CONNECTION_MAX = 64
# Default for queued.max.request.bytes when it is -1 (off in Kafka): bytes of all requests read but not yet answered.
QUEUED_REQUEST_BYTES_MAX = 512 * MIB
# One recv: big enough for a usual batch, small enough that an idle connection costs little.
RECEIVE_BUFFER_BYTES = 64 * KIB
# Less free room than this and the receive buffer is tidied or grown first: tiny reads cost a system call each.
RECEIVE_READ_BYTES_MIN = 4 * KIB
# What is read from one connection before the others have their turn, and before those who wait for it are told.
RECEIVE_PER_TURN_BYTES = MIB
# What the connection to a leader keeps for the next answer; more is given back.
RECEIVE_KEPT_BYTES_MAX = 4 * MIB
# A grown receive buffer is given back after this long without traffic.
BUFFER_KEEP_S = 5
# While others wait for memory, a connection is closed whose unfinished frame holds some and comes more slowly than this
# for so long. The favoured one may hold up those who wait, so it must send 1 MiB within some seconds.
RECEIVE_BYTES_PER_S_MIN = 256 * KIB
STALLED_FRAME_S = 5
# A file range up to this size is read and sent with its headers: one packet instead of three system calls.
INLINE_SLICE_BYTES_MAX = 16 * KIB
# iovec entries per sendmsg: Linux takes 1,024 (IOV_MAX).
SEND_VECTOR_MAX = 512
# Bytes gathered for one sendmsg, and so the most that small file ranges occupy while a peer is slow to take them.
SEND_RUN_BYTES = 256 * KIB
# File ranges sent to one connection before the others have their turn: a millisecond or two.
SEND_PER_TURN_BYTES = 4 * MIB
# A file range is sent in steps of this size: each is looked at first, whether it is in memory.
SEND_STEP_BYTES = 1 * MIB
# Requests of one connection handled before the others have their turn: at 15 µs for a small one, some milliseconds.
REQUESTS_PER_TURN_MAX = 200
# The same in time: a request that comes later than that after the first one waits for the next turn.
REQUESTS_PER_TURN_S = 0.010
# So many connections are looked at before others have their turn; each may have requests.
CONNECTIONS_TIDIED_PER_SLICE = 5
# Answers of one connection that are in memory (file ranges are not) before no more of its requests are handled.
ANSWERS_HELD_BYTES_MAX = 1 * MIB
# Accepted sockets over all listeners; fewer where the process may have few descriptors (`server/ports/system.py`).
CONNECTIONS_MAX = 50_000
# Connections waiting in the kernel for accept (socket.listen.backlog.size has Kafka's 50; bursts of clients need more).
LISTEN_BACKLOG_MAX = 1_024
# Connections accepted before those that are there have their turn.
ACCEPTS_PER_WAKEUP_MAX = 64
