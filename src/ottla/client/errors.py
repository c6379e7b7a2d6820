"""The errors of a client, besides the broker's own `ApiError`.

Rules:
- `ApiError` (from `ottla.model.errors`) is an answer of the broker; a `ClientError` means there was no usable answer.
- `maybe_applied` says whether the broker may have processed the request: only a request that surely was not applied is
  retried without further checks.
"""

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch, TopicPartition

_CODES = {each.value: each for each in ErrorCode}


class ClientError(Exception):
    """No usable answer came from the broker."""

    maybe_applied = False


class NotConnected(ClientError):
    """The connection could not be made."""


class ConnectionLost(ClientError):
    """The connection broke while a request was waiting for its answer."""

    maybe_applied = True


class UnlikeListener(ConnectionLost):
    """The broker hung up before it answered anything of use, as a listener with another security protocol does."""


class NoTls(NotConnected):
    """The broker hung up during the TLS handshake, as a listener without TLS does."""


class RequestTimedOut(ClientError):
    """The broker did not answer in time; the connection is closed, because answers come in order."""

    maybe_applied = True


class ProtocolError(ClientError):
    """The peer sent something that is not an answer of a Kafka broker."""

    maybe_applied = True


class LastingError(ClientError):
    """Another attempt would fail in the same way, so nothing is tried again."""


class UnsupportedApi(LastingError):
    """The broker and this client share no version of the API."""


class AuthenticationError(LastingError):
    """One side did not accept the other's identity: wrong credentials, a certificate that is not trusted, security
    settings that do not fit the listener. As with Kafka it is final: credentials do not become right by themselves.
    """


class LoginRefused(AuthenticationError):
    """The broker did not accept what the client showed in the exchange of the mechanism: a password, say."""


class LoginPutOff(ClientError):
    """The broker has accepted what the client showed, but has no room for it now: its tenant has all the connections
    that it may have. Another attempt may succeed.
    """


class DeliveryFailed(ClientError):
    """A record was not acknowledged within the delivery timeout; it may or may not be in the log."""

    maybe_applied = True


class BufferFull(ClientError):
    """A send waited `max_block_ms` for room in the producer's buffer; the record was not taken."""


class TopicUnknown(DeliveryFailed):
    """A send waited `max_block_ms` for metadata of a topic that no broker returned; the record was not taken."""

    maybe_applied = False


class ProducerFenced(ApiError):
    """Another producer has taken over the transactional id, or the coordinator aborted this one's transaction after
    its timeout: this producer cannot be used any more, and records of its last transaction are not visible. Close
    it.
    """


class TransactionAborted(ClientError):
    """The record belonged to a transaction that was aborted."""


class OffsetOutOfRange(ApiError):
    """The wanted offset is not in the log: deleted by retention, or not written yet."""

    def __init__(self, partition: TopicPartition, offset: int, start_offset: int, end_offset: int) -> None:
        self.partition = partition
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset
        if offset < start_offset:
            why = f"offset {offset} of {partition} is gone: the log now starts at {start_offset}"
        else:
            why = f"offset {offset} of {partition} does not exist yet: the log ends at {end_offset}"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, why)


class TopicRecreated(OffsetOutOfRange):
    """The topic that was read was deleted, and another one has its name: the offset means nothing there."""

    def __init__(self, partition: TopicPartition, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(partition, offset, start_offset, end_offset)
        self.message = (
            f"offset {offset} of {partition} is of a topic that was deleted; another one has its name now, and offsets "
            f"from {start_offset} to {end_offset}"
        )


class LogTruncated(ApiError):
    """Records that were read are no longer in the log: an unclean election replaced them (KIP-320)."""

    def __init__(self, partition: TopicPartition, offset: int, epoch: LeaderEpoch, end_offset: int) -> None:
        self.partition = partition
        self.offset = offset
        self.end_offset = end_offset
        why = f"{partition} was read up to {offset}, but epoch {epoch} now ends at {end_offset}: the log was truncated"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, why)


class NoOffset(ApiError):
    """The group has no committed offset for the partition, and `auto_offset_reset` is "none"."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        why = f"{partition} has no committed offset and auto_offset_reset is 'none': seek, or choose earliest or latest"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, why)


class CommitFailed(ApiError):
    """The group has gone on without this member: other members may own its partitions, so nothing was committed."""


def check(code: int, message: str | None = None) -> None:
    """Raise `ApiError` unless the error code of an answer is NONE."""
    if code:
        raise ApiError(error_code(code), message)


def error_code(code: int) -> ErrorCode:
    """Return the error of this number; a number that this client does not know counts as UNKNOWN_SERVER_ERROR."""
    return _CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
