"""Limits, quotas and names of tenants as users write and read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ottla.model.limits import INT32_MAX
from ottla.model.setting import UNLIMITED
from ottla.operations.errors import CommandError, WrongUsage
from ottla.operations.formats import parse_rate, parse_size
from ottla.security.quotas.limits_of_clients import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.tenants import Tenant

_WHOLE_THREAD = 100
DEFAULT_PERCENTAGE = 50.0
DEFAULT_MUTATIONS = 20.0
# The quotas of users that nobody chose quotas for.
DEFAULT_QUOTAS: Final[Mapping[str, float]] = MappingProxyType(
    {REQUEST_PERCENTAGE: DEFAULT_PERCENTAGE, CONTROLLER_MUTATION_RATE: DEFAULT_MUTATIONS}
)
_NO_LIMIT = "unlimited"


def warn_of_idle_limit(percentage: float, warn: Callable[[str], None]) -> None:
    """Warn that a quota above the whole thread limits nothing."""
    if percentage > _WHOLE_THREAD:
        warn(
            f"{REQUEST_PERCENTAGE} {percentage:g} limits nothing: an Ottla broker has one thread for requests, "
            f"which is {_WHOLE_THREAD}"
        )


def quotas_of(
    produce: str | None, consume: str | None, requests: str | None, mutations: str | None, warn: Callable[[str], None]
) -> dict[str, float | None]:
    """The quotas that options ask for; None is one that is taken away."""
    given = {
        PRODUCER_BYTE_RATE: produce,
        CONSUMER_BYTE_RATE: consume,
        REQUEST_PERCENTAGE: requests,
        CONTROLLER_MUTATION_RATE: mutations,
    }
    found: dict[str, float | None] = {}
    for key, text in given.items():
        if text is None:
            continue
        if text == _NO_LIMIT:
            found[key] = None
        elif key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE):
            found[key] = parse_rate(text)
        elif key == REQUEST_PERCENTAGE:
            found[key] = requested = _above_zero(text, "--request-percentage", "50 is half of one thread")
            warn_of_idle_limit(requested, warn)
        else:
            found[key] = _above_zero(text, "--mutations", "20 is twenty partitions per second")
    return found


def quotas_of_new_user(quotas: Mapping[str, float | None]) -> dict[str, float]:
    """The quotas of a new user: None takes one away, and a new user has none that could be."""
    return {key: value for key, value in quotas.items() if value is not None}


def limits_of(storage: str | None, partitions: str | None, connections: str | None) -> dict[str, int]:
    """The limits that options ask for, by their names in TenantLimits."""
    texts = {"storage_bytes": storage, "partitions": partitions, "connections": connections}
    found: dict[str, int] = {}
    for key, text in texts.items():
        if text is not None:
            parse = parse_size if key == "storage_bytes" else partial(_number, what=key)
            found[key] = UNLIMITED if text == _NO_LIMIT else parse(text)
    return found


def _number(text: str, what: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(INT32_MAX))
    if not is_number or int(text) > INT32_MAX:
        raise WrongUsage(f"{what} must be a number from 0 to {INT32_MAX}, not {text}", "unlimited lifts the limit")
    return int(text)


def _above_zero(text: str, option: str, hint: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        raise WrongUsage(f"{option} must be a number above 0, not {text}", f"{hint}; unlimited lifts the limit")
    return value


def full_name(tenant: str, user: str) -> str:
    """The name of a user with the tenant's prefix."""
    from ottla.model.tenancy.tenants import prefix_of

    return user if user.startswith(prefix_of(tenant)) else prefix_of(tenant) + user


def check_name(tenant: str) -> None:
    """Refuse a name that no tenant can have."""
    from ottla.model.setting import SettingScope
    from ottla.model.tenancy.scoped import scope_problem

    problem = scope_problem(SettingScope.TENANT, tenant)
    if problem is not None:
        raise WrongUsage(problem, "acme is the tenant whose names begin with acme.")


async def found_tenant(admin: Admin, name: str) -> Tenant:
    """The tenant of this name, or an error that says how to find others."""
    from ottla.model.errors import ApiError, ErrorCode

    try:
        return await admin.tenants.describe(name)
    except ApiError as error:
        if error.code == ErrorCode.RESOURCE_NOT_FOUND:
            raise CommandError(f"there is no tenant {name}", "`ottla tenant list` shows the tenants") from None
        raise


async def has_authorizer(admin: Admin) -> bool:
    """Whether the brokers keep ACLs, as far as this client may know."""
    from ottla.model.errors import ApiError, ErrorCode
    from ottla.security.acl_entry import AclFilter
    from ottla.security.acls import CLUSTER_NAME, AclResourceType

    try:
        await admin.acls.describe(AclFilter(AclResourceType.CLUSTER, CLUSTER_NAME))
    except ApiError as error:
        if error.code == ErrorCode.SECURITY_DISABLED:
            return False
        if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
    return True


def limit_text(value: int) -> str:
    return "unlimited" if value == UNLIMITED else str(value)


def rate_text(value: float | None) -> str:
    return "not known" if value is None else str(round(value))


def tenant_json(tenant: Tenant) -> dict[str, object]:
    """A tenant for JSON: null is a limit that does not limit."""
    limits = {key: None if value == UNLIMITED else value for key, value in tenant.limits._asdict().items()}
    users = {user: dict(quotas) for user, quotas in tenant.users.items()}
    return {"tenant": tenant.name, "prefix": tenant.prefix, **limits, "users": users}
