"""Counting the connections of tenants: each counts from its authentication until it is closed."""

from __future__ import annotations

from ottla.server.api.context import Context

_COUNTED = "tenant"


def refusal_of(context: Context) -> str | None:
    """Count the connection for the tenant of its principal, or return why it is refused. Authenticating again changes
    nothing.
    """
    if _COUNTED in context.when_closed:
        return None
    principal, tenants = context.principal, context.tenants
    refusal = tenants.admit(principal)
    if refusal is None:
        context.when_closed[_COUNTED] = lambda: tenants.leave(principal)
    return refusal
