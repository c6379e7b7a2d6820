"""`make docs`: write the files that are derived from the code: pages of docs/, and the table of served APIs.

`--check` only prints which files are stale.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from scripts import compatibility

if TYPE_CHECKING:
    from ottla.security.acls import AclOperation, AclResourceType

ROOT = Path(__file__).resolve().parent.parent


def settings() -> str:
    from scripts.settings_table import settings_table

    return settings_table()


def metrics() -> str:
    from scripts.metrics_table import metrics_table

    return metrics_table()


def dashboard() -> str:
    from scripts.monitoring.dashboard import dashboard

    return dashboard()


def alert_rules() -> str:
    from scripts.monitoring.rules import rules

    return rules()


def alerts() -> str:
    from scripts.monitoring.rules import page

    return page()


def doctor() -> str:
    from scripts.doctor_table import doctor_table

    return doctor_table()


def log_lines() -> str:
    from scripts.log_table import log_table

    return log_table()


def cli() -> str:
    from ottla.cli.docs import render

    return render()


def man() -> str:
    from ottla.cli.man import render_man

    return render_man()


def apis() -> str:
    """The served APIs, from the handlers' own registrations."""
    from ottla.server.api import dispatch
    from ottla.server.api.needs import rights_of
    from ottla.wire.api import API_NAMES, module_of, request_class

    dispatch.load_handlers()
    lines = [
        "# APIs served",
        "",
        "Generated from `@handles` by `make docs`. Every API of Kafka 4.3.1 is declared in `wire/messages`;",
        "those without versions here come later, and ApiVersions does not offer them.",
        "",
        "On a node with an authorizer, clients need the rights in the last column. Without one of them the request,",
        "or the part of the answer that it is for, is refused or left out, as in Kafka. Details are beside the",
        "handlers (ADR 0042).",
        "",
        "| key | API | served | declared | handler | rights |",
        "|---:|---|---|---|---|---|",
    ]
    for key, name in sorted(API_NAMES.items()):
        low, high = request_class(key).versions
        endpoint = dispatch.ENDPOINTS.get(key)
        served = f"{endpoint.low}-{endpoint.high}" if endpoint is not None else ""
        handler = f"`server/handlers/{module_of(key).replace('.', '/')}.py`" if endpoint is not None else ""
        rights = ", ".join(map(_right, rights_of(endpoint.needs))) if endpoint is not None else ""
        lines.append(f"| {key} | {name} | {served} | {low}-{high} | {handler} | {rights} |")
    return "\n".join(lines) + "\n"


def _right(right: tuple[AclOperation, AclResourceType]) -> str:
    operation, resource = right
    return f"{operation.name} {resource.name.lower().replace('_', ' ')}"


def served() -> str:
    """The versions of the served APIs as Python, for a node that has not imported its handlers."""
    from ottla.server.api import dispatch

    dispatch.load_handlers()
    lines = [
        '"""The served APIs: key → lowest and highest version. Written by `make docs` from `@handles`; do not edit."""'
    ]
    for table, listeners in (("SERVED", ("broker", "both")), ("SERVED_TO_CONTROLLERS", ("controller", "both"))):
        lines += ["", f"{table} = {{"]
        lines += [
            f"    {key}: ({endpoint.low}, {endpoint.high}),  # {endpoint.name}"
            for key, endpoint in sorted(dispatch.ENDPOINTS.items())
            if endpoint.on in listeners
        ]
        lines.append("}")
    return "\n".join([*lines, ""])


# Path of the file, from the root of the project → the function that makes it.
PAGES: dict[str, Callable[[], str]] = {
    "docs/settings.md": settings,
    "docs/metrics.md": metrics,
    "deploy/monitoring/dashboard.json": dashboard,
    "deploy/monitoring/alerts.yml": alert_rules,
    "docs/alerts.md": alerts,
    "docs/doctor.md": doctor,
    "docs/log-lines.md": log_lines,
    "docs/cli.md": cli,
    "docs/ottla.1": man,
    "docs/apis.md": apis,
    "src/ottla/server/api/api_table.py": served,
}


def stale() -> list[str]:
    """The files that differ from what would be written."""
    return [
        name for name, render in PAGES.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != render()
    ]


def main() -> int:
    if "--check" in sys.argv:
        found = stale()
        for name in found:
            print(f"{name} is stale: run `make docs`")
        return 1 if found else 0
    for name in stale():
        (ROOT / name).write_text(PAGES[name]())
        print(f"wrote {name}")
    if (told := compatibility.update()) is not None:
        print(told)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
