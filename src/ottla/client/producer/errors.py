"""The error codes of Produce by their meaning for a producer."""

from ottla.client.errors import ClientError, DeliveryFailed, LastingError
from ottla.model.errors import ApiError, ErrorCode

SUCCESS = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
# The batch may be in the log despite the error.
IN_DOUBT = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,  # it may have led at the append, and not when the replicas had it
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
# The broker does not know the sequence before this batch.
LOST_TRACK = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
# Another broker leads the partition, or is about to.
MOVED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


def has_moved(error: Exception) -> bool:
    """Return whether to look up the leader at once, because the broker is gone or does not lead any more."""
    return error.code in MOVED if isinstance(error, ApiError) else isinstance(error, ClientError)


def is_final(error: Exception) -> bool:
    """Return whether a retry cannot help."""
    if isinstance(error, ApiError):
        return not error.code.retriable
    return isinstance(error, LastingError) or not isinstance(error, ClientError)


def undelivered(what: str, trouble: Exception | None = None, *, written: bool) -> DeliveryFailed:
    """Return the error of records that were given up; `written`: they may be in the log."""
    error = DeliveryFailed(what if trouble is None else f"{what}; the last error: {trouble}")
    error.maybe_applied = written
    error.__cause__ = trouble
    return error


def may_be_written(error: Exception) -> bool:
    """Return whether a record that failed with this error may be in the log all the same."""
    if isinstance(error, ApiError):
        return error.code in (*IN_DOUBT, *LOST_TRACK, *FENCED)
    return not isinstance(error, ClientError) or error.maybe_applied
