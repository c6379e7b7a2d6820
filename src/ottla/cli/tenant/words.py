"""The arguments and options of `ottla tenant`."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.options import not_empty
from ottla.operations.tenants import DEFAULT_MUTATIONS, DEFAULT_PERCENTAGE

Name = Annotated[str, typer.Argument(help="The tenant.", callback=not_empty("tenant"))]
User = Annotated[
    str,
    typer.Argument(help="The user; the tenant's prefix is put before the name.", callback=not_empty("user")),
]
Storage = Annotated[
    str | None, typer.Option("--storage", help="Bytes of its topics, each partition once: 50GB, or unlimited.")
]
Partitions = Annotated[str | None, typer.Option("--partitions", help="Partitions of all its topics, or unlimited.")]
Connections = Annotated[str | None, typer.Option("--connections", help="Connections to one broker, or unlimited.")]
Produce = Annotated[
    str | None,
    typer.Option("--produce", help="Bytes per second that each user may write to one broker: 10MB/s, or unlimited."),
]
Consume = Annotated[
    str | None,
    typer.Option("--consume", help="Bytes per second that each user may read from one broker, or unlimited."),
]
Requests = Annotated[
    str | None,
    typer.Option(
        "--request-percentage",
        help=f"Share of one thread of a broker, or unlimited; new tenants have {DEFAULT_PERCENTAGE:g} unless given.",
    ),
]
Mutations = Annotated[
    str | None,
    typer.Option(
        "--mutations",
        help="Partitions per second that each user may create or delete, or unlimited; "
        f"new tenants have {DEFAULT_MUTATIONS:g} unless given.",
    ),
]

RegistryOfTenant = Annotated[
    str | None,
    typer.Option("--registry", help="With --with-data: delete its subjects in this registry, too: http://HOST:PORT."),
]
