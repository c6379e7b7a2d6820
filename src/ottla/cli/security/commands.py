"""`ottla security audit`: list what is open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, with_admin

app = typer.Typer(help="Look for what is open in a cluster or in a configuration.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Look for what is open in a cluster or in a configuration."""


@app.command()
def audit(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="Audit this server.properties and its files, not a running cluster."),
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List what is open: listeners, access rules, super users, certificates, users, key files.

    Each finding has a severity, the reason why it matters, and what to do. The exit status is 1 if there is
    one of severity high. A running cluster does not tell which files it uses, and may hide `super.users`: `--config`
    shows them.
    """
    from ottla.cli.terminal.output import done, out, print_json
    from ottla.cli.terminal.plain import print_warning
    from ottla.operations.security.findings import AuditSeverity
    from ottla.operations.security.sources import cluster_findings, file_findings

    if config is None:
        found = with_admin(bootstrap, lambda admin: cluster_findings(admin, print_warning))
    else:
        found = list(file_findings(config, print_warning))
    found.sort(key=lambda each: -each.severity)
    if as_json:
        print_json([each._asdict() | {"severity": each.severity.name.lower()} for each in found])
    else:
        for each in found:
            out().print(f"{each.severity.name.lower():7}{each.what}", markup=False)
            out().print(f"       why: {each.why}\n       do:  {each.fix}", markup=False)
        if not found:
            done("nothing is open")
    if any(each.severity is AuditSeverity.HIGH for each in found):
        raise typer.Exit(1)
