"""Kafka's error codes, and the exception that carries one to a client.

Rules:
- `ApiError` is for a mistake of the client, or for a state that the client has to handle. A bug of ours raises any
  other exception and is answered with UNKNOWN_SERVER_ERROR.
- Names, codes and which errors are retriable are Kafka 4.3.1's; the messages are our own words and are used only where
  no more exact message was given.
"""

from dataclasses import dataclass
from enum import IntEnum

from ottla.model.limits import ERROR_TEXT_CHARS_MAX


class ErrorCode(IntEnum):
    """One of Kafka's errors; an `int` on the wire."""

    retriable: bool
    message: str

    def __new__(cls, code: int, retriable: bool = False, message: str = "") -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    UNKNOWN_SERVER_ERROR = -1, False, "Something unexpected went wrong on the server"
    NONE = 0, False, ""
    OFFSET_OUT_OF_RANGE = 1, False, "The offset lies outside what the log holds"
    CORRUPT_MESSAGE = 2, True, "The batch is damaged: bad checksum, bad size or bad structure"
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "This broker has no such topic partition"
    INVALID_FETCH_SIZE = 4, False, "The fetch size is not valid"
    LEADER_NOT_AVAILABLE = 5, True, "The partition has no leader at the moment"
    NOT_LEADER_OR_FOLLOWER = 6, True, "This broker does not lead (or does not replicate) the partition"
    REQUEST_TIMED_OUT = 7, True, "The request ran out of time"
    BROKER_NOT_AVAILABLE = 8, False, "The broker is not there"
    REPLICA_NOT_AVAILABLE = 9, True, "The replica is not there"
    MESSAGE_TOO_LARGE = 10, False, "The batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, False, "The controller epoch is out of date"
    OFFSET_METADATA_TOO_LARGE = 12, False, "The metadata of the committed offset is too long"
    NETWORK_EXCEPTION = 13, True, "The connection broke before an answer came"
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "The coordinator is still loading its state"
    COORDINATOR_NOT_AVAILABLE = 15, True, "There is no coordinator at the moment"
    NOT_COORDINATOR = 16, True, "This broker is not the coordinator"
    INVALID_TOPIC_EXCEPTION = 17, False, "The topic may not be used in this way"
    RECORD_LIST_TOO_LARGE = 18, False, "The batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, True, "Too few replicas are in sync to accept the write"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "The write was appended but too few replicas hold it"
    INVALID_REQUIRED_ACKS = 21, False, "acks must be 0, 1 or -1"
    ILLEGAL_GENERATION = 22, False, "The group generation is not the current one"
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "The member's protocols do not fit those of the group"
    INVALID_GROUP_ID = 24, False, "The group id is not valid"
    UNKNOWN_MEMBER_ID = 25, False, "The coordinator does not know this member"
    INVALID_SESSION_TIMEOUT = 26, False, "The session timeout is outside what the broker allows"
    REBALANCE_IN_PROGRESS = 27, False, "The group rebalances: join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "The offset commit is too large"
    TOPIC_AUTHORIZATION_FAILED = 29, False, "No permission on the topic"
    GROUP_AUTHORIZATION_FAILED = 30, False, "No permission on the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "No permission on the cluster"
    INVALID_TIMESTAMP = 32, False, "The timestamp is outside what the topic allows"
    UNSUPPORTED_SASL_MECHANISM = 33, False, "The SASL mechanism is not enabled"
    ILLEGAL_SASL_STATE = 34, False, "This request does not fit the state of the SASL exchange"
    UNSUPPORTED_VERSION = 35, False, "The broker does not serve this version of the API"
    TOPIC_ALREADY_EXISTS = 36, False, "There is a topic of that name already"
    INVALID_PARTITIONS = 37, False, "The number of partitions is not valid"
    INVALID_REPLICATION_FACTOR = 38, False, "The replication factor is below 1 or above the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, False, "The replica assignment is not valid"
    INVALID_CONFIG = 40, False, "The configuration is not valid"
    NOT_CONTROLLER = 41, True, "This node is not the active controller"
    INVALID_REQUEST = 42, False, "The request makes no sense"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "The message format does not support this request"
    POLICY_VIOLATION = 44, False, "A policy of the broker forbids it"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "The producer's sequence number has a gap"
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "The producer's sequence number was seen before"
    INVALID_PRODUCER_EPOCH = 47, False, "The producer epoch is out of date"
    INVALID_TXN_STATE = 48, False, "The transaction is not in a state that allows this"
    INVALID_PRODUCER_ID_MAPPING = 49, False, "The producer id does not belong to the transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, False, "The transaction timeout is above what the broker allows"
    CONCURRENT_TRANSACTIONS = 51, True, "Another operation on the transaction is still going on"
    TRANSACTION_COORDINATOR_FENCED = 52, False, "The transaction coordinator was replaced by another"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "No permission on the transactional id"
    SECURITY_DISABLED = 54, False, "Security is switched off"
    OPERATION_NOT_ATTEMPTED = 55, False, "Not tried, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, True, "The disk of the log failed"
    LOG_DIR_NOT_FOUND = 57, False, "The broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, False, "Authentication failed"
    UNKNOWN_PRODUCER_ID = 59, False, "The broker knows nothing of this producer id"
    REASSIGNMENT_IN_PROGRESS = 60, False, "A reassignment of the partition is going on"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "Delegation tokens are switched off"
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "There is no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "The principal may not own or renew the token"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, False, "Delegation tokens cannot be asked for on this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "No permission on the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, False, "The delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, False, "Principals of this type are not supported"
    NON_EMPTY_GROUP = 68, False, "The group still has members"
    GROUP_ID_NOT_FOUND = 69, False, "There is no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "There is no such fetch session"
    INVALID_FETCH_SESSION_EPOCH = 71, True, "The fetch session epoch is not the expected one"
    LISTENER_NOT_FOUND = 72, True, "The leader has no listener of the name this client uses"
    TOPIC_DELETION_DISABLED = 73, False, "Deletion of topics is switched off"
    FENCED_LEADER_EPOCH = 74, True, "The leader epoch of the request is older than the broker's"
    UNKNOWN_LEADER_EPOCH = 75, True, "The leader epoch of the request is newer than the broker's"
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "The client cannot read the compression of this partition"
    STALE_BROKER_EPOCH = 77, False, "The broker epoch is out of date"
    OFFSET_NOT_AVAILABLE = 78, True, "The new leader does not know yet how far the log is committed"
    MEMBER_ID_REQUIRED = 79, False, "Join again with the member id given here"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "The preferred leader is not there"
    GROUP_MAX_SIZE_REACHED = 81, False, "The group is full"
    FENCED_INSTANCE_ID = 82, False, "Another member has taken over this group.instance.id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "No replica may become leader"
    ELECTION_NOT_NEEDED = 84, True, "The partition has the right leader already"
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "No reassignment is going on"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "A member of the group is subscribed to the topic"
    INVALID_RECORD = 87, False, "The broker refuses the record"
    UNSTABLE_OFFSET_COMMIT = 88, True, "A transaction holds offsets that are not decided yet"
    THROTTLING_QUOTA_EXCEEDED = 89, True, "The quota is used up"
    PRODUCER_FENCED = 90, False, "A newer producer has taken over the transactional id"
    RESOURCE_NOT_FOUND = 91, False, "There is no such resource"
    DUPLICATE_RESOURCE = 92, False, "The request names a resource twice"
    UNACCEPTABLE_CREDENTIAL = 93, False, "The credential does not meet the rules"
    INCONSISTENT_VOTER_SET = 94, False, "Sender and receiver disagree about the voters"
    INVALID_UPDATE_VERSION = 95, False, "The update version is not valid"
    FEATURE_UPDATE_FAILED = 96, False, "The features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "The forwarded principal could not be read"
    SNAPSHOT_NOT_FOUND = 98, False, "There is no such snapshot"
    POSITION_OUT_OF_RANGE = 99, False, "The position lies outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, True, "This broker knows no topic of that id"
    DUPLICATE_BROKER_REGISTRATION = 101, False, "The broker id is in use"
    BROKER_ID_NOT_REGISTERED = 102, False, "No broker of that id is registered"
    INCONSISTENT_TOPIC_ID = 103, True, "The topic id is not the one of the log"
    INCONSISTENT_CLUSTER_ID = 104, False, "The cluster id is another one"
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "There is no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "The fetch session mixes topic ids and names"
    INELIGIBLE_REPLICA = 107, False, "The proposed in-sync set holds a replica that may not be in it"
    NEW_LEADER_ELECTED = 108, False, "The change was made, and the partition has another leader now"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "The offset lies in tiered storage"
    FENCED_MEMBER_EPOCH = 110, False, "The member epoch is fenced: drop all partitions and join again"
    UNRELEASED_INSTANCE_ID = 111, False, "Another member still holds the instance id"
    UNSUPPORTED_ASSIGNOR = 112, False, "The group does not support this assignor"
    STALE_MEMBER_EPOCH = 113, False, "The member epoch is out of date"
    MISMATCHED_ENDPOINT_TYPE = 114, False, "The node at this endpoint is of another kind"
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "Endpoints of this kind are not supported"
    UNKNOWN_CONTROLLER_ID = 116, False, "There is no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "The telemetry subscription is out of date"
    TELEMETRY_TOO_LARGE = 118, False, "The telemetry is too large"
    INVALID_REGISTRATION = 119, False, "The registration is not valid"
    TRANSACTION_ABORTABLE = 120, False, "The transaction must be aborted before the id can be used again"
    INVALID_RECORD_STATE = 121, False, "The record is not in a state that allows this acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, True, "There is no such share session"
    INVALID_SHARE_SESSION_EPOCH = 123, True, "The share session epoch is not the expected one"
    FENCED_STATE_EPOCH = 124, False, "The share state epoch is fenced"
    INVALID_VOTER_KEY = 125, False, "The voter key is not the one of this replica"
    DUPLICATE_VOTER = 126, False, "The voter is in the set already"
    VOTER_NOT_FOUND = 127, False, "The voter is not in the set"
    INVALID_REGULAR_EXPRESSION = 128, False, "The regular expression is not valid"
    REBOOTSTRAP_REQUIRED = 129, False, "The client's metadata is out of date: bootstrap again"
    STREAMS_INVALID_TOPOLOGY = 130, False, "The topology is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "The topology epoch is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, False, "The topology epoch is out of date"
    SHARE_SESSION_LIMIT_REACHED = 133, True, "No more share sessions are possible"


@dataclass(frozen=True, slots=True)
class RecordError:
    """Why one record of a refused batch was refused; `index` counts from 0 within the batch."""

    index: int
    message: str


class ApiError(Exception):
    """Answers a request (or a part of it) with `code` and, if the response has a field for it, `message`.

    With `message` None the response has no text (`text` still has the general one, for logs). A very long message,
    which may repeat a name of the client's, is cut. `record_errors` names the records of a batch that were at fault
    (Produce v8+).
    """

    def __init__(
        self, code: ErrorCode, message: str | None = None, record_errors: tuple[RecordError, ...] = ()
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message if message is None else message[:ERROR_TEXT_CHARS_MAX]
        self.record_errors = record_errors

    @property
    def text(self) -> str:
        """The given message, or else the general one of the code."""
        return self.message or self.code.message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.text}"
