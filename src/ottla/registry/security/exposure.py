"""The warning at start of a registry that other machines can reach without authentication, or without TLS."""

from __future__ import annotations

from ottla.security.host import is_loopback


def exposure(url: str, host: str, *, authenticates: bool) -> str | None:
    """Return the warning about a registry that listens at this address, or None."""
    if is_loopback(host.partition("%")[0]):
        return None
    if not authenticates:
        return f"everybody who reaches {url} may read and change all schemas: set authentication.method"
    if url.startswith("http:"):
        return (
            f"{url} authenticates clients, but does not encrypt: passwords and tokens can be read on their way. "
            "Use https in listeners, or listen on 127.0.0.1"
        )
    return None
