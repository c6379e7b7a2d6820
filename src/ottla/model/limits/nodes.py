"""Between the nodes of a cluster: connections, heartbeats, joining, balancing."""

from ottla.model.limits.units import MIB

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
# What the time of day may differ by from one that nobody sets before it counts as set.
CLOCK_STEP_MS = 500
# Exchanges of replicas, or of leaders, that one plan may ask for: another run finds what is left.
BALANCE_EXCHANGES_MAX = 10_000
# Quiet partitions that are looked at for each busy one.
BALANCE_CANDIDATES_MAX = 16
# How often a fresh node asks for the cluster it is to join.
JOIN_RETRY_MS = 500
# A server.properties that is larger is none.
SETTINGS_FILE_BYTES_MAX = 4 * MIB
