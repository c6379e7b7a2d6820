"""The tables of docs/compatibility.md, from the results that the compatibility tests left in .tools/compatibility.json.

The text of the page is written by hand; only the text between a pair of markers is replaced. If there are fewer results
than the page shows, the page stays as it is, so that a machine without Java, or a run of some tests, does not empty it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / ".tools" / "compatibility.json"
PAGE = ROOT / "docs" / "compatibility.md"

Results = dict[str, dict[str, str]]
MARKS = {"passed": "✓", "failed": "✗"}
CLIENTS = ("java", "confluent-kafka", "aiokafka", "kafka-python", "franz-go", "kafkajs")
SECURITY = "security: "  # what features of the table of security begin with


def render(page: str, results: Results) -> str:
    """The page with new tables."""
    secure = _part(results, secure=True)
    results = _part(results, secure=False)
    clients = {row: cells for row, cells in results.items() if row.startswith(CLIENTS)}
    others = {row: cells for row, cells in results.items() if row not in clients}
    page = _replace(page, "clients", _matrix(clients))
    return _replace(_replace(page, "tools", _list(others)), "security", _ways(secure))


def _part(results: Results, *, secure: bool) -> Results:
    """The results of features of security, or those of all others; rows without any are left out."""
    chosen = {
        row: {feature: result for feature, result in cells.items() if feature.startswith(SECURITY) == secure}
        for row, cells in results.items()
    }
    return {row: cells for row, cells in chosen.items() if cells}


def _replace(page: str, name: str, table: str) -> str:
    pattern = re.compile(rf"(<!-- {name}: generated -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    assert pattern.search(page), f"docs/compatibility.md has no place for the table of {name}"
    return pattern.sub(lambda match: match[1] + table + match[2], page)


def _matrix(clients: Results) -> str:
    """A table with one row per feature and one column per client, because there are more features than clients."""
    columns = sorted(clients, key=lambda row: next(at for at, name in enumerate(CLIENTS) if row.startswith(name)))
    features = sorted({feature for cells in clients.values() for feature in cells})
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + ":-:|" * len(columns)]
    for feature in features:
        marks = [MARKS.get(clients[column].get(feature, ""), "") for column in columns]
        lines.append(f"| {feature} | " + " | ".join(marks) + " |")
    return "\n".join(lines) + "\n"


def _ways(secure: Results) -> str:
    """A table with one row per client and one column per way to authenticate."""
    features = sorted({feature for cells in secure.values() for feature in cells})
    lines = ["| | " + " | ".join(each.removeprefix(SECURITY) for each in features) + " |"]
    lines.append("|---|" + ":-:|" * len(features))
    for row, cells in sorted(secure.items()):
        lines.append(f"| {row} | " + " | ".join(MARKS.get(cells.get(each, ""), "") for each in features) + " |")
    return "\n".join(lines) + "\n"


def _list(others: Results) -> str:
    lines = ["| | |", "|---|---|"]
    for row, cells in sorted(others.items()):
        outcome = "failed" if "failed" in cells.values() else "passed"
        what = ", ".join(feature for feature in sorted(cells) if feature != "tool")
        lines.append(f"| {row}{': ' + what if what else ''} | {MARKS[outcome]} |")
    return "\n".join(lines) + "\n"


def shown(page: str) -> int:
    """The number of results that the page shows."""
    return sum(page.count(mark) for mark in MARKS.values())


def update() -> str | None:
    """Rewrite the page if there are results that it does not show; a message about it, if there is any."""
    if not RESULTS.exists():
        return None
    old = PAGE.read_text()
    new = render(old, json.loads(RESULTS.read_text()))
    if new == old:
        return None
    if shown(new) < shown(old):
        return (
            f"docs/compatibility.md stays as it is: it shows {shown(old)} results, and .tools/compatibility.json has "
            f"{shown(new)}; `pytest tests/compat` makes all of them"
        )
    PAGE.write_text(new)
    return "wrote docs/compatibility.md"
