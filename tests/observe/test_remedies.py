"""Every warning and error of a node, a registry, a client or a pipeline says what to do.

And no remedy is left of a line that is gone.
"""

from __future__ import annotations

import ast
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import ottla
from ottla.observe import logs
from ottla.observe.remedies import DEFECT, REMEDIES, SAID

SOURCE = Path(ottla.__file__).parent
PACKAGES = (
    "server",
    "registry",
    "web",
    "raft",
    "log",
    "replica",
    "cluster",
    "groups",
    "txns",
    "shares",
    "telemetry",
    "client",
    "spark",
    "sql",
)
LOGGERS = ("log", "_log")
METHODS = {"warning", "error", "exception", "critical", "log"}
SAYS_ITSELF = ("%s",)  # templates that are a whole text made elsewhere


def logged() -> Iterator[tuple[str, str]]:
    """The module and the template of each line at WARNING or above, also of those whose level is chosen."""
    for package in PACKAGES:
        for path in sorted((SOURCE / package).rglob("*.py")):
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            tree = ast.parse(path.read_text())
            texts = {
                target.id: node.value.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for node in ast.walk(tree):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                where = node.func.value
                if node.func.attr in METHODS and isinstance(where, ast.Name) and where.id in LOGGERS:
                    text = node.args[1 if node.func.attr == "log" else 0]
                    found = texts.get(text.id) if isinstance(text, ast.Name) else getattr(text, "value", None)
                    assert isinstance(found, str), f"{module}:{node.lineno}: the template is not known"
                    yield module, found


def test_every_warning_has_a_remedy_and_every_remedy_a_warning() -> None:
    found = set(logged())
    declared = {(module, template) for module, lines in REMEDIES.items() for template in lines}
    assert len(found) > 120
    assert found == declared


def test_what_says_itself_what_to_do() -> None:
    """The line ends with an advice, or its text is made elsewhere."""
    said = [template for lines in REMEDIES.values() for template, remedy in lines.items() if remedy == SAID]
    assert said
    for template in said:
        assert template in SAYS_ITSELF or any(mark in template for mark in (": ", "; ", ". ")), template


def line(style: str, name: str, template: str, *values: object, count: int = 1) -> list[str]:
    stream = io.StringIO()
    handler = logs.set_up(stream, style="json" if style == "json" else "plain", coloured=False)
    try:
        for _ in range(count):
            logging.getLogger(name).warning(template, *values)
    finally:
        logs.tear_down(handler)
    return stream.getvalue().splitlines()


def test_a_line_says_what_to_do() -> None:
    (plain,) = line("plain", "ottla.server.net.listener", "accept failed: %s", "EMFILE")
    assert "WARNING server.net.listener: accept failed: EMFILE -> raise the limit of open files" in plain
    (told,) = map(json.loads, line("json", "ottla.server.net.listener", "accept failed: %s", "EMFILE"))
    assert told["message"] == "accept failed: EMFILE" and told["do"].startswith("raise the limit of open files")
    (other,) = map(json.loads, line("json", "ottla.server.net.listener", "unknown"))
    assert "do" not in other


def test_a_line_that_counts_others_says_it_too() -> None:
    record = logging.LogRecord("ottla.server.loop.tasks", logging.ERROR, "", 0, "", (), None)
    record.msg = "work in the background failed (and 7 more like it)"
    assert logs.remedy_of(record) == DEFECT
