"""Refuse entries that can have no effect. Kafka's protocol accepts them, and the user would think that they work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.operations.access.asked import principal_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.security.acls import AclOperation, AclResourceType


def effective_principal(text: str) -> str:
    """Return the principal. Raise ValueError for one that no client can have."""
    from ottla.security.principal import USER, parse_principal

    principal = principal_of(text)
    kind, name, _ = parse_principal(principal)
    if kind != USER:
        hint = "" if kind.lower() != USER.lower() else f": {USER}:{name} is the user"
        raise ValueError(f"{principal}: the principals of clients have the type {USER}, spelt like this{hint}")
    if f",{USER}:" in name.replace(" ", ""):
        raise ValueError(f"{principal} is one name with a comma: an entry is for one principal")
    return principal


def check_effect(
    resources: Sequence[tuple[AclResourceType, str]], operations: Sequence[AclOperation], *, prefix: str | None = None
) -> None:
    """Raise ValueError for a name that no resource has, and for an operation that no request needs on it. `prefix` is
    how the user calls what made the names prefixes; None if they are whole names.
    """
    from ottla.security.acl_effect import effect_problem

    problem = effect_problem(resources, operations, prefix)
    if problem is not None:
        raise ValueError(problem)
