"""Who is counted where each has a share of something bounded: a principal, or an address without authentication."""

from __future__ import annotations

from ottla.security.address_holder import holder_of
from ottla.security.principal import ANONYMOUS
from ottla.server.api.context import Context


def counted_for(context: Context) -> str:
    """Return the client's principal; of a client that did not authenticate its address, or its /64 network."""
    principal = context.principal
    return holder_of(context.connection.remote_address[0]) if principal == ANONYMOUS else str(principal)
