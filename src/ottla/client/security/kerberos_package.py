"""Whether the package behind GSSAPI is installed. It is an extra: it needs the Kerberos of the operating system."""

from __future__ import annotations

from ottla.observe.installing import install_command

EXTRA = "kerberos"


def require_kerberos_package() -> None:
    """Raise ValueError if the package cannot be imported."""
    try:
        import gssapi  # noqa: F401
    except (ImportError, OSError):
        raise ValueError(f"it needs the package gssapi: {install_command(EXTRA)}") from None
