"""Transactions and idempotence. Producer ids, transactions and the log behind them."""

from ottla.model.section import CLUSTER_WIDE, HIGH, LOW, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import at_least

transactions = Section("Transactions and idempotence", "Producer ids, transactions and the log behind them.")

TRANSACTION_STATE_LOG_NUM_PARTITIONS = transactions.int32(
    "transaction.state.log.num.partitions", 50, "Partitions of __transaction_state.", valid=at_least(1), importance=HIGH
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR = transactions.int16(
    "transaction.state.log.replication.factor",
    3,
    "Replicas of __transaction_state.",
    valid=at_least(1),
    importance=HIGH,
)
TRANSACTION_STATE_LOG_MIN_ISR = transactions.int32(
    "transaction.state.log.min.isr",
    2,
    "Replicas that must hold a record of __transaction_state.",
    valid=at_least(1),
    importance=HIGH,
)
TRANSACTION_STATE_LOG_SEGMENT_BYTES = transactions.int32(
    "transaction.state.log.segment.bytes",
    104_857_600,
    "Segment size of __transaction_state.",
    valid=at_least(1),
    importance=HIGH,
)
TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE = transactions.int32(
    "transaction.state.log.load.buffer.size",
    5_242_880,
    "Bytes read at once when the coordinator loads its state.",
    valid=at_least(1),
    importance=HIGH,
    no_effect=NOT_YET,
)
TRANSACTION_MAX_TIMEOUT_MS = transactions.int32(
    "transaction.max.timeout.ms",
    900_000,
    "Longest transaction timeout a producer may ask for.",
    valid=at_least(1),
    importance=HIGH,
)
TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS = transactions.int32(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    10_000,
    "How often transactions that ran out of time are aborted.",
    valid=at_least(1),
    importance=LOW,
)
TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS = transactions.int32(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    3_600_000,
    "How often expired transactional ids are removed.",
    valid=at_least(1),
    importance=LOW,
)
TRANSACTION_PARTITION_VERIFICATION_ENABLE = transactions.boolean(
    "transaction.partition.verification.enable",
    True,
    "Check with the coordinator that a partition is part of the transaction written to it.",
    importance=LOW,
    dynamic=CLUSTER_WIDE,
)
TRANSACTION_TWO_PHASE_COMMIT_ENABLE = transactions.boolean(
    "transaction.two.phase.commit.enable",
    False,
    "Allow transactions that an outside coordinator decides.",
    importance=LOW,
    no_effect=NOT_YET,
)
TRANSACTIONAL_ID_EXPIRATION_MS = transactions.int32(
    "transactional.id.expiration.ms",
    604_800_000,
    "Time an unused transactional id is kept.",
    valid=at_least(1),
    importance=HIGH,
)
PRODUCER_ID_EXPIRATION_MS = transactions.int32(
    "producer.id.expiration.ms",
    86_400_000,
    "Time the state of a silent producer is kept per partition.",
    valid=at_least(1),
    importance=LOW,
    dynamic=CLUSTER_WIDE,
)
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS = transactions.int32(
    "producer.id.expiration.check.interval.ms",
    600_000,
    "How often silent producers are looked for.",
    valid=at_least(1),
    importance=LOW,
    internal=True,
)
ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS = transactions.int32(
    "add.partitions.to.txn.retry.backoff.ms",
    20,
    "Wait before a partition is added to a transaction again.",
    valid=at_least(1),
    importance=HIGH,
)
ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS = transactions.int32(
    "add.partitions.to.txn.retry.backoff.max.ms",
    100,
    "Longest time such retries go on.",
    valid=at_least(0),
    importance=HIGH,
)
