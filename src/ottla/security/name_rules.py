"""What the rules for names of certificates and of Kerberos tickets have in common."""

from __future__ import annotations


class NoMatchingRule(Exception):
    """No rule says how a name is mapped, so the client has no principal."""
