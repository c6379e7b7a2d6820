"""Log set-up: form, colour and bounds."""

import io
import json
import logging
import time
from collections.abc import Iterator

import pytest

from ottla.model.limits import LOG_LINE_CHARS_MAX
from ottla.observe import logs

LOG = logging.getLogger("ottla.server.test")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def plain(stream: io.StringIO) -> Iterator[io.StringIO]:
    handler = logs.set_up(stream)
    yield stream
    logs.tear_down(handler)


def test_plain_lines(plain: io.StringIO) -> None:
    LOG.warning("lost %s", "peer")
    LOG.debug("not shown")
    time, level, name, text = plain.getvalue().rstrip("\n").split(" ", 3)
    assert len(time) == len("12:30:59.123")
    assert (level, name, text) == ("WARNING", "server.test:", "lost peer")


def test_a_message_cannot_fake_lines_or_fill_the_disk(plain: io.StringIO) -> None:
    LOG.info("name %s", "x\nERROR fake\r" + "y" * 100_000)
    (line,) = plain.getvalue().splitlines()
    assert "x\\nERROR fake\\r" in line
    assert len(line) < LOG_LINE_CHARS_MAX + 200


def test_a_traceback_follows(plain: io.StringIO) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        LOG.exception("failed")
    assert plain.getvalue().splitlines()[-1] == "ValueError: broken"


def test_colour_on_a_terminal_only() -> None:
    terminal = Terminal()
    handler = logs.set_up(terminal)
    LOG.error("red")
    logs.tear_down(handler)
    assert terminal.getvalue().startswith("\x1b[31m")


def test_json_lines(stream: io.StringIO) -> None:
    handler = logs.set_up(stream, style="json", level="debug")
    LOG.debug("a %s", "b")
    try:
        raise ValueError("broken")
    except ValueError:
        LOG.exception("failed")
    logs.tear_down(handler)
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["level"], first["logger"], first["message"]) == ("debug", "ottla.server.test", "a b")
    assert second["error"].endswith("ValueError: broken")


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("ottla.x", logging.INFO, "file", 1, text, (), None)


def test_repeats_are_counted_not_written() -> None:
    times_s = iter((0.0, 1.0, 2.0, 3.0, 3.0, 11.0))
    repeats = logs.RepeatFilter(burst=2, window_s=10, clock_s=lambda: next(times_s))
    assert [repeats.filter(record("same")) for _ in range(4)] == [True, True, False, False]
    assert repeats.filter(record("other"))
    late = record("same")
    assert repeats.filter(late)
    assert late.getMessage() == "same (and 2 more like it)"


def test_windows_end_also_after_the_clock_was_set_back() -> None:
    repeats = logs.RepeatFilter(burst=1, window_s=0.05)
    assert [repeats.filter(record("same")) for _ in range(2)] == [True, False]
    time.sleep(0.06)
    late = record("same")
    late.created -= 3_600
    assert repeats.filter(late)


def test_a_complete_log_is_written_whole_at_any_level(stream: io.StringIO) -> None:
    complete = logs.complete_log("ottla.test.complete")
    handler = logs.set_up(stream, level="ERROR")
    for number in range(100):
        complete.info("number %d", number)
        complete.getChild("below").info("below")
        LOG.info("number %d", number)
    complete.debug("not shown")
    logs.tear_down(handler)
    written = stream.getvalue()
    assert (written.count("INFO    test.complete: number"), written.count("\n")) == (100, 120)


def test_the_memory_for_repeats_is_bounded() -> None:
    repeats = logs.RepeatFilter()
    for number in range(5_000):
        repeats.filter(record(f"text {number}"))
    assert len(repeats._seen) <= 1_000
