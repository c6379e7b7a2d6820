"""Tenants: parts of a cluster that belong to different people, told apart by the beginning of names.

The topics, groups, transactional ids and users of the tenant `acme` have names that begin with `acme.`. A tenant's name
has no dot, so the tenant of a name is what comes before its first dot.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import collision_key
from ottla.model.settings.tenants import (
    OTTLA_TENANT_CONNECTIONS_MAX,
    OTTLA_TENANT_PARTITIONS_MAX,
    OTTLA_TENANT_STORAGE_MAX_BYTES,
)
from ottla.model.tenancy.scoped import scoped_values

SEPARATOR = "."


class TenantLimits(NamedTuple):
    """The limits of one tenant; UNLIMITED where there is none."""

    storage_bytes: int
    partitions: int
    connections: int


def prefix_of(tenant: str) -> str:
    return tenant + SEPARATOR


def tenant_in(name: str) -> str:
    """Return the tenant that a name belongs to, if there is a tenant of that name; empty for a name without dots."""
    tenant, dot, _ = name.partition(SEPARATOR)
    return tenant if dot else ""


def collision_problem(tenant: str, others: Iterable[str]) -> str | None:
    """Return why there cannot be a tenant of this name beside the others, or None.

    Topics whose names differ only in '.' and '_' collide. With tenants `a` and `a_b`, `a.b.orders` would keep
    `a_b.orders` from being created.
    """
    own = collision_key(prefix_of(tenant))
    for other in others:
        theirs = collision_key(prefix_of(other))
        if other != tenant and (own.startswith(theirs) or theirs.startswith(own)):
            return (
                f"tenant {tenant} cannot be beside tenant {other}: '.' and '_' count as the same in names of topics, "
                "so topics of one could take the names of the other's"
            )
    return None


def check_letters(target: str, sources: Iterable[str], tenants: Collection[str]) -> None:
    """Raise POLICY_VIOLATION if dead letters would leave their tenant: the tenant of the first source that belongs to
    one. Sources without a tenant may have letters anywhere.
    """
    for source in sources:
        tenant = tenant_in(source)
        if tenant in tenants:
            if tenant_in(target) != tenant:
                raise ApiError(
                    ErrorCode.POLICY_VIOLATION,
                    f"{source} belongs to tenant {tenant}: its dead letters cannot go to {target}, only to topics "
                    f"whose names begin with {prefix_of(tenant)}",
                )
            return


def tenants_in(texts: Mapping[str, str], defaults: Config) -> dict[str, TenantLimits]:
    """Return all tenants with their limits: `texts` are the dynamic settings of all brokers, `defaults` the limits of
    tenants that have none of their own.
    """
    storage = scoped_values(OTTLA_TENANT_STORAGE_MAX_BYTES, texts)
    partitions = scoped_values(OTTLA_TENANT_PARTITIONS_MAX, texts)
    connections = scoped_values(OTTLA_TENANT_CONNECTIONS_MAX, texts)
    return {
        name: TenantLimits(
            storage.get(name, defaults[OTTLA_TENANT_STORAGE_MAX_BYTES]),
            partitions.get(name, defaults[OTTLA_TENANT_PARTITIONS_MAX]),
            connections.get(name, defaults[OTTLA_TENANT_CONNECTIONS_MAX]),
        )
        for name in dict.fromkeys([*storage, *partitions, *connections])
    }
