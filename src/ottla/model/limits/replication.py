"""Replicas: followers, in-sync changes, directories, epochs."""

from ottla.model.limits.units import MIB

# First pause of a follower, or of one partition, after a failure; doubled up to replica.fetch.backoff.ms.
REPLICA_RETRY_MS = 10
# Pause before an AlterPartition request that failed as a whole is sent again.
ALTER_PARTITION_RETRY_MS = 50
# Partitions that one fetch of a follower names: the leader reads all of them at once.
PARTITIONS_NAMED_PER_FETCH = 500
# Partitions that one AlterPartition request of a broker names; further changes wait for its answer.
ISR_CHANGES_PER_REQUEST_MAX = 500
# Replicas whose directory is reported in one AssignReplicasToDirs (Kafka's number), and the pauses after a failure.
ASSIGNMENTS_PER_REQUEST_MAX = 2_250
ASSIGNMENT_RETRY_MS = 50
ASSIGNMENT_RETRY_MS_MAX = 10_000
# Topics that are being auto-created; requests for more are answered with a retriable error.
TOPICS_BEING_CREATED_MAX = 10_000
# Future replicas for which a log directory was chosen (AlterReplicaLogDirs); the oldest is forgotten for a new one.
PREFERRED_DIRECTORIES_MAX = 10_000
# Bytes copied at a time when a replica moves to another data directory.
LOG_DIR_COPY_BYTES = MIB
# Leader epochs kept per partition: one per election; those below the log start offset are dropped anyway.
EPOCHS_PER_PARTITION_MAX = 100_000
