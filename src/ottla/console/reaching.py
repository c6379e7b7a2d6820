"""What a console cannot reach when it starts: the cluster, the schema registry. It serves all the same, and its pages
say what is wrong; this is for who reads the terminal.

Where visitors sign in, nobody's credentials are used: a connection is opened, and the broker says what it serves.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.registry import RegistryError, RegistryOptions, RegistryUnreachable, SchemaRegistry
from ottla.console.options import ConsoleOptions
from ottla.operations.failures import hint_for, message_of

_REGISTRY_S = 5.0
_REGISTRY_HINT = "`ottla registry` starts one; --registry http://HOST:PORT names another, --registry off does without"


class UnreachedPlace(NamedTuple):
    """What cannot be reached, with its address and the reason, and what the user could do."""

    what: str
    hint: str | None


async def unreachable(options: ConsoleOptions) -> list[UnreachedPlace]:
    """Return what does not answer now."""
    looks = [_cluster(options)]
    if options.registry is not None:
        looks.append(asyncio.to_thread(_registry, options.registry))
    return [found for found in await asyncio.gather(*looks) if found is not None]


async def _cluster(options: ConsoleOptions) -> UnreachedPlace | None:
    security = options.security
    if options.signs_in and security is not None:
        security = replace(security, sasl=None)
    try:
        async with Cluster(replace(options.client(), security=security)) as cluster:
            await cluster.any_connection()
    except (ClientError, OSError) as error:
        what = f"the cluster at {options.bootstrap} cannot be reached: {message_of(error)}"
        return UnreachedPlace(what, hint_for(error))
    return None


def _registry(options: RegistryOptions) -> UnreachedPlace | None:
    plain = replace(options, auth="", token="", timeout_s=_REGISTRY_S, attempts=1)
    try:
        SchemaRegistry(plain).call("GET", "schemas", "types")
    except RegistryUnreachable as error:
        return UnreachedPlace(str(error), _REGISTRY_HINT)
    except RegistryError:
        return None  # it answers, if only that somebody has to log in
    return None
