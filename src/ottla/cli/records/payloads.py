"""The schema registry that commands about records use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.beside.services import REGISTRY_PORT
from ottla.cli.options import registry_urls
from ottla.cli.profile.chosen import registry_access, registry_or_profile

if TYPE_CHECKING:
    from ottla.client.registry import SchemaRegistry


RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        envvar="OTTLA_REGISTRY",
        help="Schema registry: http://HOST:PORT; port 8081 of the broker's host unless given: `ottla up` has it there.",
        callback=registry_or_profile,
    ),
]


def registry_at(url: str | None, bootstrap: str) -> SchemaRegistry:
    """The registry at this URL, or by default the one beside the broker."""
    from ottla.client.options import parse_bootstrap
    from ottla.client.registry import RegistryOptions, SchemaRegistry

    if url is None:
        host = parse_bootstrap(bootstrap)[0].host
        url = f"http://[{host}]:{REGISTRY_PORT}" if ":" in host else f"http://{host}:{REGISTRY_PORT}"
    return SchemaRegistry(RegistryOptions.of(registry_urls(url), registry_access(), attempts=1))
