"""What a user is told of an error: its message, and a hint what could be done next."""

import socket

from ottla.client.errors import (
    AuthenticationError,
    ClientError,
    ConnectionLost,
    DeliveryFailed,
    LoginPutOff,
    NotConnected,
    NoTls,
    OffsetOutOfRange,
    UnlikeListener,
    UnsupportedApi,
)
from ottla.client.security.secret import SecretMissing
from ottla.log.files.checkpoint import CheckpointError
from ottla.log.files.disk import StorageError
from ottla.log.producers.snapshot import SnapshotError
from ottla.model.errors import ApiError, ErrorCode
from ottla.operations.errors import CommandError
from ottla.wire.types import WireError

EXPECTED = (
    CommandError,
    ClientError,
    ApiError,
    WireError,
    StorageError,
    CheckpointError,
    SnapshotError,
    OSError,
    UnicodeEncodeError,
    SecretMissing,
)

# No answer came over the network. Other errors of the operating system are defects where nobody has named a file.
NO_ANSWER = (ClientError, ConnectionError, TimeoutError, socket.gaierror)

_HINTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`ottla topic list` shows what there is",
    ErrorCode.TOPIC_ALREADY_EXISTS: "`ottla topic describe` shows it, `ottla topic alter` changes it",
    ErrorCode.INVALID_CONFIG: "`ottla config get` lists the settings and their values",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker cannot write to its disk: is it full? Its log says more",
    ErrorCode.GROUP_ID_NOT_FOUND: "`ottla group list` shows the groups",
    ErrorCode.INVALID_PARTITIONS: "`ottla topic describe` shows how many partitions the topic has",
    ErrorCode.INVALID_REPLICATION_FACTOR: "`ottla cluster status` shows the brokers that replicas could be on",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "a topic's name is 1 to 249 ASCII letters, digits, '.', '_' and '-'",
    ErrorCode.INVALID_UPDATE_VERSION: "`ottla cluster features` shows the features and their levels",
    ErrorCode.OFFSET_OUT_OF_RANGE: "`ottla topic describe` shows the offsets that there are",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`ottla txn list` shows the transactional ids",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "set delegation.token.secret.key on all nodes, the same on each",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in on a SASL or mutual TLS listener, and not with a token",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "`ottla acl explain` tells why, and `ottla acl add` gives the right",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "`ottla acl explain` tells why, and `ottla acl add` gives the right",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "a super user gives rights on the cluster: `ottla acl add … --cluster`",
    ErrorCode.SECURITY_DISABLED: "brokers keep ACLs with authorizer.class.name; `ottla up --secure` sets it",
    ErrorCode.POLICY_VIOLATION: "`ottla config get broker default` shows rules for topics, `ottla tenant show` limits",
    ErrorCode.MESSAGE_TOO_LARGE: "raise max.message.bytes of the topic with `ottla topic alter`",
}


_PATH_HINTS: dict[type[OSError], str] = {
    FileNotFoundError: "is the path right? It is read from the directory that the command runs in",
    FileExistsError: "that is a file: give a directory, or a path where nothing is yet",
    IsADirectoryError: "that is a directory: give a file",
    NotADirectoryError: "a part of the path is a file: give a directory",
    PermissionError: "this user may not do that there: give another path",
}


def hint_for(error: BaseException) -> str | None:
    """A hint what the user could do next; None if there is none."""
    if isinstance(error, CommandError):
        return error.hint
    if isinstance(error, UnlikeListener | NoTls):
        return "--command-config FILE or --profile NAME say how to connect: security.protocol and what belongs to it"
    if isinstance(error, LoginPutOff):
        return "close a connection of the tenant, or raise its limit: `ottla tenant alter --connections`"
    if isinstance(error, NotConnected):
        return "is a node running? `ottla up` starts one; --bootstrap HOST:PORT names another"
    if isinstance(error, AuthenticationError) and "invalid_token" in str(error):
        return "the broker's log says why: the token's time, issuer, audience or signature"
    if isinstance(error, AuthenticationError):
        return "--profile or --command-config say how to authenticate; `ottla profile show` shows a profile"
    if isinstance(error, ConnectionLost):
        return "is it a TLS or SASL listener? --profile or --command-config say how to connect to one"
    if isinstance(error, UnsupportedApi):
        return "`ottla api` shows what the broker serves"
    if isinstance(error, OffsetOutOfRange):
        return "`--from-beginning` starts at the first record there is"
    if isinstance(error, ApiError):
        return _HINTS.get(error.code)
    if isinstance(error, DeliveryFailed) and error.__cause__ is not None:
        return hint_for(error.__cause__)
    if isinstance(error, UnicodeEncodeError) and error.encoding != "utf-8":
        return "the locale of the shell, or PYTHONIOENCODING, sets the encoding: UTF-8 has every character"
    if isinstance(error, OSError):
        return _PATH_HINTS.get(type(error))
    return None


def message_of(error: BaseException) -> str:
    """The message of an error, without the operating system's error number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    found = not_text(error)
    if found is not None:
        return f"an argument is not text in UTF-8{_wrong_byte(found)}"
    if isinstance(error, UnicodeEncodeError):
        return f"the output cannot be written in the encoding {error.encoding}"
    if isinstance(error, TimeoutError):
        return str(error) or "no answer came in time"
    return str(error) or type(error).__name__


def not_text(error: BaseException) -> UnicodeEncodeError | None:
    """The error of Python below it if an argument is not UTF-8, whose bytes Python marks by surrogates."""
    found = error.__cause__ if isinstance(error, WireError) else error
    return found if isinstance(found, UnicodeEncodeError) and found.encoding == "utf-8" else None


def _wrong_byte(error: UnicodeEncodeError) -> str:
    """The byte that is wrong, and not the text around it, which may be a secret."""
    mark = ord(error.object[error.start])
    return f": one of its bytes is 0x{mark - 0xDC00:02x}" if 0xDC80 <= mark <= 0xDCFF else ""
