"""Classify the failure of a query: its kind, whether it may pass by itself, and one line that describes it.

Rules:
- The kinds are declared once, here; docs/pipelines.md has a row for each.
- An error may pass if the same start may succeed a moment later without any change: a broker, a registry or a worker
  was away. Errors of records, schemas, files and code do not pass.
- Exceptions of the user's code do not pass, except those that say that another service did not answer (`_UNANSWERED`).
"""

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ottla.model.errors import ErrorCode
from ottla.spark.pipelines.failure_text import CodePlace, FailedSpan, ParsedFailure, parse_failure, records_of


class CauseKind(Enum):
    """The kind of a failure: its label, whether it may pass by itself, and a hint what the user can do."""

    passes: bool
    hint: str | None

    def __new__(cls, label: str, passes: bool = False, hint: str | None = None) -> "CauseKind":
        made = object.__new__(cls)
        made._value_ = label
        made.passes = passes
        made.hint = hint
        return made

    BROKER_AWAY = "the broker is away", True
    DENIED = (
        "the broker refuses its login or its certificate",
        False,
        "`ottla profile show` shows a profile; --profile chooses one",
    )
    BROKER_BUSY = "the broker asks to try again", True
    REGISTRY_AWAY = "the schema registry is away", True
    WORKER_LOST = "a worker is lost", True, "if it comes again: is there enough memory?"
    DISK_FULL = "a disk is full", True, "make room where the checkpoints are"
    FENCED = "another writer took over", True
    UNFINISHED = "a batch was not finished", True
    SHARED = "another query uses the same checkpoint", False, "give each query a checkpoint of its own"
    UNANSWERED = "a service that the code calls is away", True
    SPARK_BUSY = "Spark was not ready", True
    SPARK_GONE = "Spark is gone", False, "start the pipeline again: it goes on from its checkpoints"
    BAD_RECORD = "a record cannot be decoded", False, "option on.bad says what becomes of such records"
    DATA_LOSS = "records are gone"
    NO_TOPIC = "a topic is missing", False, "`ottla topic list` shows what there is"
    REFUSED = "the sink refuses", False
    CODE = "the pipeline's code failed"
    DATA = "the data do not fit the query"
    CHANGED = (
        "the query does not fit its checkpoint",
        False,
        "undo the change, or begin anew with --from, which uses new checkpoints",
    )
    DAMAGED = "the checkpoint is damaged", False, "restore it, or begin anew with --from, which uses new checkpoints"
    NOT_WRITABLE = "files cannot be written", False, "check the directory and its permissions"
    OTHER = "Spark failed"


# By the class of a Python exception.
_CLASSES = {
    "ottla.client.errors.AuthenticationError": CauseKind.DENIED,
    "ottla.client.errors.NotConnected": CauseKind.BROKER_AWAY,
    "ottla.client.errors.ConnectionLost": CauseKind.BROKER_AWAY,
    "ottla.client.errors.RequestTimedOut": CauseKind.BROKER_AWAY,
    "ottla.client.errors.DeliveryFailed": CauseKind.BROKER_AWAY,
    "ottla.client.errors.TopicUnknown": CauseKind.BROKER_AWAY,
    "ottla.client.errors.BufferFull": CauseKind.BROKER_AWAY,
    "ottla.client.errors.ProducerFenced": CauseKind.FENCED,
    "ottla.client.registry.RegistryUnreachable": CauseKind.REGISTRY_AWAY,
    "ottla.spark.typed.reading.BadRecord": CauseKind.BAD_RECORD,
    "ottla.spark.typed.dead_letters.UndeliveredYet": CauseKind.BROKER_AWAY,
    "ottla.spark.read.loss.DataLoss": CauseKind.DATA_LOSS,
    "ottla.spark.read.lookup.TopicMissing": CauseKind.NO_TOPIC,
    "ottla.spark.sink.protocol.BatchRefused": CauseKind.REFUSED,
    "ottla.spark.sink.protocol.UnfinishedBatch": CauseKind.UNFINISHED,
    "ottla.spark.sink.protocol.TakenOver": CauseKind.FENCED,
    "ottla.spark.sink.schema.BadRows": CauseKind.DATA,
    "MemoryError": CauseKind.WORKER_LOST,
}
# Exceptions of user code that say that another service did not answer, by the ends of their names.
_UNANSWERED = re.compile(
    r"(?:ConnectionError|ConnectionRefusedError|ConnectionResetError|ConnectionAbortedError|BrokenPipeError"
    r"|RemoteDisconnected|ConnectError|Timeout|TimeoutError|TimeoutException|URLError)$"
)
# The registry's error codes begin with the HTTP status: 429 and 5xx mean that the request may be tried again.
_REGISTRY_BUSY = re.compile(r"the schema registry answered (?:5|429)")
_API_ERROR = re.compile(r"(?P<code>[A-Z][A-Z_]+): ")
_FENCED = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "UNKNOWN_PRODUCER_ID", "INVALID_PRODUCER_ID_MAPPING")
# By words in Java's error texts.
_WORDS: tuple[tuple[str, CauseKind], ...] = (
    (r"No space left on device|Disk quota exceeded|not enough space", CauseKind.DISK_FULL),
    (r"Read-only file system|Permission denied|Operation not permitted|mkdir of \S+ failed", CauseKind.NOT_WRITABLE),
    (r"ParentNotDirectoryException|Parent path is not a directory|AccessControlException", CauseKind.NOT_WRITABLE),
    (r"SparkContext was shut down|stopped SparkContext|INVALID_HANDLE", CauseKind.SPARK_GONE),
    (
        r"Answer from Java side is empty|Error while sending or receiving|py4j\.protocol\.Py4JNetworkError",
        CauseKind.SPARK_GONE,
    ),
    (r"RETRIES_EXCEEDED|StatusCode\.UNAVAILABLE", CauseKind.SPARK_GONE),
    (r"Python worker (?:exited unexpectedly|failed to connect back|process terminated)", CauseKind.WORKER_LOST),
    (r"ExecutorLostFailure|OutOfMemoryError|FetchFailed|Failed to connect to /", CauseKind.WORKER_LOST),
    (r"Task not serializable|ConcurrentModificationException", CauseKind.SPARK_BUSY),
    (r"a query with that name is already active", CauseKind.SPARK_BUSY),
    (r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY", CauseKind.SHARED),
    (r"sources in the checkpoint offsets and now there are|STATE_STORE_\w*NOT_COMPATIBLE", CauseKind.CHANGED),
    (r"STREAMING_STATEFUL_OPERATOR|STATE_STORE_\w*SCHEMA|INVALID_SCHEMA_EVOLUTION", CauseKind.CHANGED),
    (r"MALFORMED_LOG_FILE|Failed to read log file|JsonParseException|INCORRECT_OFFSETS", CauseKind.DAMAGED),
    (r"CANNOT_LOAD_STATE_STORE|STREAMING_CHECKPOINT|MISSING_\w*FILE|CHECKPOINT_\w*NOT_FOUND", CauseKind.DAMAGED),
)
_SENTENCES = {
    r"Python worker exited unexpectedly": "a Python worker was killed, or crashed",
    r"Python worker failed to connect back": "a Python worker did not come up in time",
    r"ExecutorLostFailure .*?Reason: (?P<why>.+)": "an executor was lost: {why}",
    r"No space left on device": "no space left on device",
    r"Disk quota exceeded": "disk quota exceeded",
    r"java\.lang\.OutOfMemoryError: (?P<why>.+)": "Spark is out of memory: {why}",
    r"There are \[(?P<was>\d+)\] sources in the checkpoint offsets and now there are \[(?P<now>\d+)\]": (
        "it was made with {was} sources, and there are {now} now"
    ),
    r"StatusCode\.UNAVAILABLE|RETRIES_EXCEEDED": "its Connect server does not answer",
    r"CONCURRENT_STREAM_LOG_UPDATE": "both wrote down the same batch",
}
# Kinds whose label is put before Spark's message, because it says more than Spark does.
_LABELLED = (
    *(
        CauseKind.CHANGED,
        CauseKind.DAMAGED,
        CauseKind.NOT_WRITABLE,
        CauseKind.DISK_FULL,
        CauseKind.FENCED,
        CauseKind.SHARED,
        CauseKind.SPARK_GONE,
    ),
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a query failed; `str()` of it is one line."""

    kind: CauseKind
    what: str
    passes: bool
    frame: CodePlace | None = None
    spans: tuple[FailedSpan, ...] = ()

    @property
    def is_of_one_record(self) -> bool:
        return len(self.spans) == 1 and self.spans[0].is_one

    @property
    def is_worth_another_run(self) -> bool:
        """Whether a run that ended with this cause may be started again unchanged. That includes a run whose Spark is
        gone, although its query could not be restarted within the run.
        """
        return self.passes or self.kind is CauseKind.SPARK_GONE

    def __str__(self) -> str:
        place = None if self.frame is None else f"at {Path(self.frame.file).name}:{self.frame.line}"
        if place and self.frame is not None and self.frame.function not in ("", "<module>"):
            place += f" in {self.frame.function}"
        about = records_of(self.spans) if self.spans else None
        details = "; ".join(each for each in (place, about) if each)
        said = f"{self.what} ({details})" if details else self.what
        return f"{said}; {self.kind.hint}" if self.kind.hint else said


def cause_of(error: BaseException | str) -> Cause:
    """The cause of an exception that Spark or a layer below it has raised, or of its text."""
    text = error if isinstance(error, str) else _text(error)
    failure = parse_failure(text)
    kind, passes = _kind(failure)
    frame = failure.frames[-1] if failure.frames else None
    told = kind in (CauseKind.CODE, CauseKind.UNANSWERED, CauseKind.DATA, CauseKind.WORKER_LOST, CauseKind.OTHER)
    what = _what(failure).removesuffix(".") or kind.value
    if kind in _LABELLED and what != kind.value:
        what = f"{kind.value}: {what}"
    return Cause(kind, what, passes, frame, failure.spans if told else ())


def cause_of_call(error: BaseException) -> Cause:
    """The cause of an exception that a call of Spark's own API has raised: a connection that fails there is the
    connection to Spark.
    """
    if isinstance(error, ConnectionError | EOFError):
        return Cause(CauseKind.SPARK_GONE, f"{CauseKind.SPARK_GONE.value}: its driver does not answer", passes=False)
    return cause_of(error)


def _text(error: BaseException) -> str:
    """The exception as a text of the form that Spark uses for exceptions of other processes."""
    name = type(error).__name__ if type(error).__module__ == "builtins" else _full_name(type(error))
    said = str(error)
    if type(error).__module__.startswith(("pyspark.", "py4j.", "grpc")):
        return said if said.strip() else name
    return f"Traceback (most recent call last):\n{name}: {said}" if said.strip() else name


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _kind(failure: ParsedFailure) -> tuple[CauseKind, bool]:
    if failure.error is not None:
        return _of_python(failure.error, failure.what)
    for words, kind in _WORDS:
        if re.search(words, failure.text):
            return kind, kind.passes
    if failure.frames:
        return CauseKind.CODE, False
    return (CauseKind.DATA if failure.condition else CauseKind.OTHER), False


def _of_python(error: str, what: str) -> tuple[CauseKind, bool]:
    if error in _CLASSES:
        kind = _CLASSES[error]
        return kind, kind.passes
    if error.startswith(("ottla.model.errors.", "ottla.client.errors.")):
        return _of_broker(what)
    if _REGISTRY_BUSY.match(what) and error == "ottla.client.registry.RegistryError":
        return CauseKind.REGISTRY_AWAY, True
    if error.startswith("ottla."):
        return CauseKind.REFUSED, False
    if _UNANSWERED.search(error):
        return CauseKind.UNANSWERED, True
    return CauseKind.CODE, False


def _of_broker(what: str) -> tuple[CauseKind, bool]:
    """The kind of an error code from the broker; Kafka defines which codes are retriable."""
    found = _API_ERROR.match(what)
    if found is not None and found["code"] in _FENCED:
        return CauseKind.FENCED, True
    if found is not None and found["code"] in ErrorCode.__members__ and ErrorCode[found["code"]].retriable:
        return CauseKind.BROKER_BUSY, True
    return CauseKind.REFUSED, False


def _what(failure: ParsedFailure) -> str:
    if failure.error is None:
        for words, sentence in _SENTENCES.items():
            found = re.search(words, failure.text)
            if found is not None:
                return sentence.format(**found.groupdict())
    return failure.what if failure.error is not None and failure.error.startswith("ottla.") else failure.sentence
