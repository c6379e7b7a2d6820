"""Print errors on a terminal: one red line, and a hint if there is one."""

from ottla.cli.terminal.plain import CommandError, print_error
from ottla.client.errors import ClientError, DeliveryFailed, NotConnected, OffsetOutOfRange, UnsupportedApi
from ottla.log.files.checkpoint import CheckpointError
from ottla.log.files.disk import StorageError
from ottla.log.producers.snapshot import SnapshotError
from ottla.model.errors import ApiError, ErrorCode
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
)

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
    if isinstance(error, NotConnected):
        return "is a node running? `ottla up` starts one; --bootstrap HOST:PORT names another"
    if isinstance(error, UnsupportedApi):
        return "`ottla api` shows what the broker serves"
    if isinstance(error, OffsetOutOfRange):
        return "`--from-beginning` starts at the first record there is"
    if isinstance(error, ApiError):
        return _HINTS.get(error.code)
    if isinstance(error, DeliveryFailed) and error.__cause__ is not None:
        return hint_for(error.__cause__)
    if isinstance(error, OSError):
        return _PATH_HINTS.get(type(error))
    return None


def report(error: BaseException, usual_hint: str) -> int:
    """Print the error to stderr, with a hint of its own or the usual one, and return the exit code."""
    print_error(message_of(error), hint_for(error) or usual_hint)
    return error.exit_code if isinstance(error, CommandError) else 1


def message_of(error: BaseException) -> str:
    """The message of an error, without the operating system's error number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
