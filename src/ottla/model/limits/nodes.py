"""Between the nodes of a cluster: connections, heartbeats, joining, balancing."""

from ottla.model.limits.units import MIB

# Timeout of a connection to a node of the same cluster, which should accept it at once.
PEER_CONNECT_MS = 5_000
# Pause after a connection to another node failed; doubles up to the second value, which is less than a restart takes.
PEER_RECONNECT_MS = 20
PEER_RECONNECT_MS_MAX = 500
# Addresses (and purposes) for which a node keeps a connection or the state of one.
PEER_LINKS_MAX = 5_000
# Brokers that a node which is no broker itself tries when it enters the cluster as a client.
BOOTSTRAP_BROKERS_MAX = 10
# How long a request without a timeout of its own looks for the active controller.
CONTROLLER_ANSWER_MS = 30_000
# Pause before the controller is asked again after it did not know its role yet, or could not be reached.
CONTROLLER_RETRY_MS = 50
# Timeout of the probe whether a broker whose connection broke still listens: on the same network the answer comes at
# once.
PROBE_MS = 500
# How long a stopping broker waits for other brokers to lead its partitions; then it stops all the same.
CONTROLLED_SHUTDOWN_MS = 60_000
# Heartbeat interval of a broker that waits for the controller's permission to stop (or, FENCED_HEARTBEAT_MS, to be
# unfenced): shorter than broker.heartbeat.interval.ms.
LEAVING_HEARTBEAT_MS = 50
# A stopping broker stops at once if no controller answers for this long: the controllers are probably stopping, too.
LEAVING_ANSWER_MS = 2_000
FENCED_HEARTBEAT_MS = 50
# Pause before a registration is repeated that was refused for now (the session of the broker's former process has not
# ended).
REGISTRATION_RETRY_MS = 200
# The time of day counts as set when it differs by this much from the steady clock.
CLOCK_STEP_MS = 500
# Exchanges of replicas, or of leaders, in one plan; another run finds the remaining ones.
BALANCE_EXCHANGES_MAX = 10_000
# Quiet partitions that are considered as the exchange for each busy one.
BALANCE_CANDIDATES_MAX = 16
# Interval at which a new node looks for the cluster that it is to join.
JOIN_RETRY_MS = 500
# Brokers, and dedicated controllers, that `ottla up` starts on one machine: each is a process of some 80 MB.
LOCAL_NODES_MAX = 50
# A larger file is not accepted as a server.properties.
SETTINGS_FILE_BYTES_MAX = 4 * MIB
