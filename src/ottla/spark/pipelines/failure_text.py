"""Parse the text with which Spark reports a failure: what was raised, where in the user's code, and in which records.

Such a text has a sentence of Spark, then a Python traceback, a Java one, or one nested in the other, and then, after
`=== Streaming Query ===`, the query and the offsets it had read. With Spark Connect the stack of the server follows.

Rules:
- The innermost error is the cause: the last traceback counts, and among Java's causes the last one that has a message.
- The place in the user's code is the innermost frame that is not in Spark, Ottla or the Python library.
- `ParsedFailure.sentence` is one line for every text, and never the heading of a traceback.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ottla.model.limits import PIPELINE_ERROR_CHARS_MAX

_TRACEBACK = "Traceback (most recent call last):"
_QUERY = re.compile(r"^=== Streaming Query ===$", re.MULTILINE)
_SERVER = re.compile(r"^JVM stacktrace:$", re.MULTILINE)
_FRAME = re.compile(r'  File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
# An exception of py4j, inside a function that Spark calls on the driver: its message is Java's report.
_FROM_JAVA = re.compile(r"py4j\.protocol\.Py4J\w+: ")
# An exception that was raised while Spark pickled an object (`spark.plain.told_while_pickled`).
_PICKLED = re.compile(
    r"_pickle\.PicklingError: (?P<error>(?:ottla\.[\w.]+|builtins\.ValueError)): (?P<what>.*)", re.DOTALL
)
_JAVA_HEADING = re.compile(r"An error occurred while calling \S+\n:? ?")
_JAVA_CAUSE = re.compile(r"^Caused by: (?P<what>.+)$", re.MULTILINE)
_JAVA_FRAME = re.compile(r"^\s+(?:at |\.\.\. \d+ more)")
_JAVA_CLASS = re.compile(r"^\(?(?:[a-z]\w*\.)+[A-Z][\w$]*(?:: |\) |\)?$)")
_TASK = re.compile(
    r"^Job aborted due to stage failure: .*?most recent failure: Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): "
)
# A message that the user raises in SQL (`raise_error`) is kept whole; of Spark's own messages only the first line is,
# because details follow it.
_RAISED = "[USER_RAISED_EXCEPTION]"
_STREAM = re.compile(r"^[\[(]STREAM_FAILED[\])] (?:Query \[id = [^]]*\] terminated with exception: )?")
_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]{3,})\] ")
_STATE = re.compile(r"\s*SQLSTATE: \w{5}\b")
_LIBRARY = re.compile(
    r"^<|\.pyx$|/(?:site|dist)-packages/|/pyspark(?:\.zip)?/|/py4j[^/]*/|/lib/python3(?:\.\d+)?/"
    r"|/ottla/(?:spark|client|columns|model|records|schemas|wire)/"
)
_SOURCE = re.compile(r"@[0-9a-f]+: (?=\{)")
_PARTITIONS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A place in the user's code."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class FailedSpan:
    """Records of one partition in the failed batch. `start` None means from the beginning of the query."""

    topic: str
    partition: int
    start: int | None
    end: int

    @property
    def is_one(self) -> bool:
        return self.start is not None and self.end - self.start == 1

    def __str__(self) -> str:
        place = f"of {self.topic}-{self.partition}"
        if self.start is None:
            return f"offsets up to {self.end - 1} {place}"
        if self.is_one:
            return f"offset {self.start} {place}"
        return f"offsets {self.start} to {self.end - 1} {place}"


@dataclass(frozen=True, slots=True)
class ParsedFailure:
    """A parsed failure. `error` is the class of a Python exception with its module, `what` its message without that
    class. `condition` is Spark's name for the error (`CAST_INVALID_INPUT`). `text` is the whole part of the text that
    is about the failure, to be searched for words.
    """

    error: str | None
    what: str
    condition: str | None
    frames: tuple[CodePlace, ...]
    spans: tuple[FailedSpan, ...]
    text: str

    @property
    def sentence(self) -> str:
        """One line: the short name of the exception and its message."""
        if self.error is None:
            return self.what
        name = self.error.rpartition(".")[2]
        return f"{name}: {self.what}" if self.what else name


def records_of(spans: Sequence[FailedSpan]) -> str:
    """These records described in words."""
    if len(spans) == 1 and spans[0].is_one:
        return f"the record at {spans[0]}"
    shown = ", ".join(str(each) for each in spans[:_PARTITIONS_SHOWN])
    more = len(spans) - _PARTITIONS_SHOWN
    return f"among {shown} and {more} more partitions" if more > 0 else f"among {shown}"


def parse_failure(text: str) -> ParsedFailure:
    """Parse any text."""
    query = _QUERY.search(text)
    head = text[: query.start()] if query is not None else text
    server = _SERVER.search(head)
    if server is not None and head[: server.start()].strip():
        head = head[: server.start()]
    head = _STATE.sub("", head)
    rest = text[query.end() :] if query is not None else ""
    conditions = [found["name"] for found in _CONDITION.finditer(head) if found["name"] != "STREAM_FAILED"]
    condition = conditions[-1] if conditions else None
    before, heading, traceback = head.rpartition(_TRACEBACK)
    error, what, frames = _of_python(traceback) if heading else (None, "", ())
    if error is not None and _FROM_JAVA.match(f"{error}: "):
        error, what = None, _of_java(what)
    elif error is None:
        what = _of_java(before if heading else head)
    said = _line(what) or (condition or "" if error is None else "")
    return ParsedFailure(error, said, condition, frames, _spans(rest), head)


def _of_python(traceback: str) -> tuple[str | None, str, tuple[CodePlace, ...]]:
    """Parse what follows the heading of a traceback: indented frames, then the exception with its message."""
    lines = traceback.splitlines()
    at = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith(" ")), None)
    found = (_FRAME.match(line) for line in lines[:at])
    frames = tuple(
        CodePlace(each["file"], int(each["line"]), each["function"] or "")
        for each in found
        if each is not None and not _LIBRARY.search(each["file"])
    )
    if at is None:
        return None, "", frames
    raised = "\n".join(lines[at:])
    pickled = _PICKLED.match(raised)
    if pickled is not None:
        return pickled["error"].removeprefix("builtins."), pickled["what"], frames
    error, _, what = raised.partition(":")
    if not re.fullmatch(r"[\w.]+", error.split("\n")[0]):
        return None, "", frames
    first, _, rest = error.partition("\n")
    return first, f"{rest}{what}" if rest else what, frames


def _of_java(text: str) -> str:
    """The message of the last Java cause that has one."""
    text = _JAVA_HEADING.sub("", text.strip(), count=1)
    causes = [_JAVA_CLASS.sub("", found["what"]).strip() for found in _JAVA_CAUSE.finditer(text)]
    telling = [each for each in causes if each]
    if telling:
        return telling[-1]
    own = []
    for line in text.splitlines():
        if _JAVA_FRAME.match(line) or line.startswith(("Caused by:", "Driver stacktrace:", "== SQL")):
            break
        own.append(line)
    said = _TASK.sub("", _STREAM.sub("", "\n".join(own).strip()))
    said = _JAVA_CLASS.sub("", said) or said
    return said if _RAISED in said else said.partition("\n")[0]


def _line(text: str) -> str:
    """The text as one printable line, shortened to the allowed length."""
    plain = text.replace(_TRACEBACK, "")
    line = " ".join("".join(each if each.isprintable() else " " for each in plain).split())
    return line if len(line) <= PIPELINE_ERROR_CHARS_MAX else f"{line[: PIPELINE_ERROR_CHARS_MAX - 1]}…"


def _spans(rest: str) -> tuple[FailedSpan, ...]:
    """The records of the batch, from the offsets before and after it."""
    told = {name: dict(_offsets(rest, name)) for name in ("Committed", "Available")}
    return tuple(
        FailedSpan(topic, partition, begun, end)
        for (topic, partition), end in sorted(told["Available"].items())
        if (begun := told["Committed"].get((topic, partition), 0 if told["Committed"] else None)) is None or begun < end
    )


def _offsets(rest: str, name: str) -> Iterator[tuple[tuple[str, int], int]]:
    """Read `{Source@1f2e: {"topic": {"0": 4}}, …}`. Sources other than `ottla` have other values there, which are
    skipped.
    """
    found = re.search(rf"^Current {name} Offsets: (?P<told>.*)$", rest, re.MULTILINE)
    for source in _SOURCE.finditer(found["told"] if found is not None else ""):
        try:
            told, _ = json.JSONDecoder().raw_decode(source.string, source.end())
            for topic, places in told.items():
                for partition, offset in places.items():
                    if topic and partition.isdecimal() and isinstance(offset, int) and offset > 0:
                        yield (topic, int(partition)), offset
        except (ValueError, AttributeError):
            continue
