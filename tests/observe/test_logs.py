"""Log set-up: form, colour and bounds."""

import io
import json
import logging
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


def record(text: str, at_s: float) -> logging.LogRecord:
    made = logging.LogRecord("ottla.x", logging.INFO, "file", 1, text, (), None)
    made.created = at_s
    return made


def test_repeats_are_counted_not_written() -> None:
    repeats = logs.RepeatFilter(burst=2, window_s=10)
    assert [repeats.filter(record("same", at)) for at in (0, 1, 2, 3)] == [True, True, False, False]
    assert repeats.filter(record("other", 3))
    late = record("same", 11)
    assert repeats.filter(late)
    assert late.getMessage() == "same (and 2 more like it)"


def test_the_memory_for_repeats_is_bounded() -> None:
    repeats = logs.RepeatFilter()
    for number in range(5_000):
        repeats.filter(record(f"text {number}", 0))
    assert len(repeats._seen) <= 1_000
