"""Log set-up: one handler on the `ottla` logger, plain or JSON, coloured on a terminal, and bounded.

Bounded means: a line is cut at a fixed length, line breaks inside a message cannot fake further lines, and a message
repeated in a tight loop is written a few times per window and then only counted. Messages are told apart by their
templates, so log with arguments (`log.warning("lost %s", peer)`), not with f-strings. Warnings and errors say what to
do: the remedies are declared in `remedies.py`, by the same templates.

A log that tells who has done what (`complete_log`) is written whole, whatever the level and however often a line
comes. Whoever writes to it bounds how many lines there are.
"""

import json
import logging
import time
from collections.abc import Callable
from typing import IO, Literal

from ottla.model.limits import LOG_LINE_CHARS_MAX
from ottla.observe.remedies import remedy_of

ROOT = "ottla"

_COLOURS = {"DEBUG": "\x1b[2m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[1;31m"}
_RESET = "\x1b[0m"
_TEMPLATES_MAX = 1_000
# The loggers of which each line is written, and below which the level is always INFO.
_COMPLETE: set[str] = set()


def complete_log(name: str) -> logging.Logger:
    """Return a logger of which each line from INFO on is written: neither the level that `set_up` is given nor repeats
    hold one back. Loggers below it have the same level, and their repeats are counted, not written.
    """
    _COMPLETE.add(name)
    logger = logging.getLogger(name)
    logger.setLevel(logging.INFO)
    return logger


class PlainFormatter(logging.Formatter):
    """`12:30:59.123 WARNING server.listener: text -> what to do`; a traceback follows on lines of its own."""

    def __init__(self, *, coloured: bool) -> None:
        super().__init__(datefmt="%H:%M:%S")
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        at = f"{self.formatTime(record, self.datefmt)}.{int(record.msecs):03}"
        name = record.name.removeprefix(ROOT + ".")
        remedy = remedy_of(record)
        line = f"{at} {record.levelname:<7} {name}: {_message(record)}" + (f" -> {remedy}" if remedy else "")
        if self._coloured and record.levelname in _COLOURS:
            line = f"{_COLOURS[record.levelname]}{line}{_RESET}"
        if record.exc_info:
            line += "\n" + _cut(self.formatException(record.exc_info))
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: `time`, `level`, `logger`, `message`, `do` (what to do), `error` (a traceback)."""

    def __init__(self) -> None:
        super().__init__(datefmt="%Y-%m-%dT%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": f"{self.formatTime(record, self.datefmt)}.{int(record.msecs):03}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        remedy = remedy_of(record)
        if remedy:
            entry["do"] = remedy
        if record.exc_info:
            entry["error"] = _cut(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


class RepeatFilter(logging.Filter):
    """Lets each message template through `burst` times per window; a later window tells how many were left out.

    Windows are of steady time: after the machine's clock was set back they end as before. Complete logs pass.
    """

    def __init__(self, burst: int = 20, window_s: float = 10, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock_s = clock_s
        self._burst = burst
        self._window_s = window_s
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name in _COMPLETE:
            return True
        key, now_s = (record.name, str(record.msg)), self._clock_s()
        start, count = self._seen.get(key, (now_s, 0))
        if now_s - start >= self._window_s:
            if count > self._burst:
                record.msg = f"{record.msg} (and {count - self._burst} more like it)"
            start, count = now_s, 0
        if key not in self._seen and len(self._seen) >= _TEMPLATES_MAX:
            self._seen.clear()
        self._seen[key] = (start, count + 1)
        return count < self._burst


def set_up(
    stream: IO[str],
    *,
    level: str = "INFO",
    style: Literal["plain", "json"] = "plain",
    coloured: bool | None = None,
) -> logging.Handler:
    """Send the logs of this package to `stream`; return the handler, for `tear_down`.

    With `coloured` None, lines are coloured if the stream is a terminal.
    """
    handler = logging.StreamHandler(stream)
    if style == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(PlainFormatter(coloured=stream.isatty() if coloured is None else coloured))
    handler.addFilter(RepeatFilter())
    logger = logging.getLogger(ROOT)
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False
    # asyncio logs every slow callback and selector at DEBUG and INFO; messages that matter are WARNING or above.
    asyncio_logger = logging.getLogger("asyncio")
    asyncio_logger.setLevel(logging.WARNING)
    asyncio_logger.addHandler(handler)
    return handler


def tear_down(handler: logging.Handler) -> None:
    """Undo `set_up` (tests start many nodes in one process)."""
    for name in (ROOT, "asyncio"):
        logging.getLogger(name).removeHandler(handler)
    logger = logging.getLogger(ROOT)
    logger.propagate = True
    logger.setLevel(logging.NOTSET)
    handler.close()


def _message(record: logging.LogRecord) -> str:
    return _cut(record.getMessage().replace("\r", "\\r").replace("\n", "\\n"))


def _cut(text: str) -> str:
    return text if len(text) <= LOG_LINE_CHARS_MAX else f"{text[:LOG_LINE_CHARS_MAX]}... ({len(text)} characters)"
