"""Tenants: a prefix of names, users with rights on that prefix and nothing else, quotas, and limits.

Rules:
- The limits of a tenant are settings of all brokers (`ottla.tenant.*@<tenant>`); a tenant exists while it has one.
- The users of a tenant are those whose names begin with its prefix. Each has the same rights: everything on topics,
  groups and transactional ids that begin with the prefix, nothing on the cluster.
- A user is known by a password, by ACLs or by quotas: one with a certificate or a token has no password. Brokers
  without an authorizer keep no ACLs.
- Rates are quotas of users, as in Kafka: they hold for each user on each broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.client.admin.acls import AclAdmin
from ottla.client.admin.configs import Change, ConfigAdmin, ConfigEntry, Operation
from ottla.client.admin.nodes import NodeAdmin
from ottla.client.admin.quotas import ANY, QuotaAdmin, QuotaEntity
from ottla.client.admin.tenant_holdings import TenantHoldings, TenantHoldingsAdmin
from ottla.client.admin.users import UserAdmin
from ottla.client.cluster import Cluster
from ottla.client.metadata import TopicInfo
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.model.setting import Setting, SettingScope
from ottla.model.settings.tenants import (
    OTTLA_TENANT_CONNECTIONS_MAX,
    OTTLA_TENANT_PARTITIONS_MAX,
    OTTLA_TENANT_STORAGE_MAX_BYTES,
)
from ottla.model.tenancy.scoped import scope_problem, scoped_name
from ottla.model.tenancy.tenants import TenantLimits, collision_problem, prefix_of, tenant_in, tenants_in
from ottla.security.acl_entry import AclEntry, AclFilter
from ottla.security.acls import WILDCARD, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.principal import USER

_EVERY_BROKER: Final = Resource(ResourceType.BROKER, "")
_OWNED: Final = (AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID)
_LIMITS: Final[tuple[Setting[int], ...]] = (
    OTTLA_TENANT_STORAGE_MAX_BYTES,
    OTTLA_TENANT_PARTITIONS_MAX,
    OTTLA_TENANT_CONNECTIONS_MAX,
)
_NO_DEFAULTS = Config({}, BROKER_SETTINGS)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant, its users, and the quotas of each of them."""

    name: str
    limits: TenantLimits
    users: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        return prefix_of(self.name)


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """What a tenant has: `bytes_once` counts each partition once, by its leader, as the limit does; `bytes_on_disk` all
    replicas. The rates are bytes per second of its topics, summed over brokers; None if no broker measures them.

    `unknown_nodes` did not answer, so their replicas are missing; `unmeasured_nodes` tell no rates, as those of Kafka.
    """

    topics: int
    partitions: int
    bytes_once: int
    bytes_on_disk: int
    unknown_nodes: tuple[int, ...] = ()
    produced_byte_rate: float | None = None
    consumed_byte_rate: float | None = None
    unmeasured_nodes: tuple[int, ...] = ()


class TenantAdmin:
    """Operations on tenants."""

    def __init__(self, cluster: Cluster) -> None:
        self._configs = ConfigAdmin(cluster)
        self._acls = AclAdmin(cluster)
        self._users = UserAdmin(cluster)
        self._quotas = QuotaAdmin(cluster)
        self._holdings = TenantHoldingsAdmin(cluster)
        self._nodes = NodeAdmin(cluster)

    async def all(self) -> list[Tenant]:
        """Return all tenants, sorted by name, with all users that passwords, ACLs or quotas name."""
        limits = await self._limits()
        users: dict[str, dict[str, Mapping[str, float]]] = {name: {} for name in limits}
        quotas = await self._quotas.describe(QuotaEntity(user=ANY)) if limits else {}
        for user in sorted(await self._named_users(quotas)) if limits else ():
            if tenant_in(user) in users:
                users[tenant_in(user)][user] = quotas.get(QuotaEntity(user=user), {})
        return [Tenant(name, limits[name], users[name]) for name in sorted(limits)]

    async def describe(self, name: str) -> Tenant:
        """Return a tenant; raise RESOURCE_NOT_FOUND if there is none of this name."""
        found = next((each for each in await self.all() if each.name == name), None)
        if found is None:
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no tenant {name}")
        return found

    async def create(self, name: str, limits: TenantLimits) -> None:
        """Create a tenant without users; raise DUPLICATE_RESOURCE if it exists, or if its topics could collide with
        those of another.
        """
        problem = scope_problem(SettingScope.TENANT, name)
        if problem is not None:
            raise ValueError(problem)
        others = await self._limits()
        if name in others:
            raise ApiError(ErrorCode.DUPLICATE_RESOURCE, f"there is a tenant {name} already")
        problem = collision_problem(name, others)
        if problem is not None:
            raise ApiError(ErrorCode.DUPLICATE_RESOURCE, problem)
        await self.set_limits(name, limits)

    async def set_limits(self, name: str, limits: TenantLimits) -> None:
        """Change the limits of a tenant, all at once."""
        changes = [Change(scoped_name(each, name), str(value)) for each, value in zip(_LIMITS, limits, strict=True)]
        await self._configs.alter(_EVERY_BROKER, changes)

    async def add_user(self, name: str, user: str, quotas: Mapping[str, float]) -> None:
        """Give a user, who may have no password yet, the rights of a tenant and these quotas."""
        if not user.startswith(prefix_of(name)):
            raise ValueError(f"the users of tenant {name} have names that begin with {prefix_of(name)}")
        await self._acls.create(_entries(name, user))
        if quotas:
            await self._quotas.alter(QuotaEntity(user=user), quotas)

    async def remove_user(self, user: str) -> None:
        """Take all rights, quotas and passwords from a user of a tenant."""
        await self._delete_acls([AclFilter(principal=f"User:{user}")])
        for entity, quotas in (await self._quotas.describe(QuotaEntity(user=user))).items():
            await self._quotas.alter(entity, dict.fromkeys(quotas))
        try:
            await self._users.remove(user)
        except ApiError as error:
            if error.code != ErrorCode.RESOURCE_NOT_FOUND:
                raise

    async def set_quotas(self, user: str, quotas: Mapping[str, float | None]) -> None:
        """Change quotas of a user; None removes one, and those that are not named stay."""
        await self._quotas.alter(QuotaEntity(user=user), quotas)

    async def topics(self, name: str) -> list[TopicInfo]:
        """Return the topics of a tenant."""
        return await self._holdings.topics(prefix_of(name))

    async def holdings(self, name: str) -> TenantHoldings:
        """Return the topics, groups and transactional ids of a tenant."""
        return await self._holdings.find(prefix_of(name))

    async def usage(self, name: str) -> TenantUsage:
        """Measure what a tenant has, and what it writes and reads now."""
        topics = await self.topics(name)
        leaders = {(topic.name, each.index): each.leader for topic in topics for each in topic.partitions}
        answers = await self._nodes.log_dirs_each()
        once = on_disk = 0
        for node_id, directories in answers.found.items():
            for replica in (each for directory in directories for each in directory.replicas):
                leader_id = leaders.get((replica.topic, replica.partition))
                if leader_id is not None:
                    on_disk += replica.size_bytes
                    once += replica.size_bytes if leader_id == node_id and not replica.is_future else 0
        rates = await self._nodes.tenant_rates_each(name)
        measured = [each for each in rates.found.values() if each is not None]
        unknown = answers.failed.keys() | rates.failed.keys()
        return TenantUsage(
            len(topics),
            len(leaders),
            once,
            on_disk,
            tuple(sorted(unknown)),
            sum(each.produced for each in measured) if measured else None,
            sum(each.consumed for each in measured) if measured else None,
            tuple(sorted(node for node, each in rates.found.items() if each is None)),
        )

    async def delete(self, name: str, *, with_data: bool = False) -> tuple[str, ...]:
        """Delete a tenant: its users with their rights and quotas, settings of its groups, and its limits; `with_data`,
        also its topics, and its groups with their offsets. Return its transactional ids, which stay until they expire.

        Raise POLICY_VIOLATION while topics or groups exist, and with data NON_EMPTY_GROUP while a group has members.
        The limits go last, so a deletion that failed can be repeated.
        """
        tenant = await self.describe(name)
        data = (await self.holdings(name)).data
        if data and not with_data:
            raise ApiError(ErrorCode.POLICY_VIOLATION, f"tenant {name} still has {data}")
        # Users go first: they could create topics meanwhile.
        for user in tenant.users:
            await self.remove_user(user)
        await self._delete_acls([AclFilter(each, tenant.prefix, PatternType.PREFIXED) for each in _OWNED])
        stay = await self._holdings.delete(tenant.prefix)
        changes = [Change(scoped_name(each, name), None, Operation.DELETE) for each in _LIMITS]
        await self._configs.alter(_EVERY_BROKER, changes)
        return stay

    async def _named_users(self, quotas: Iterable[QuotaEntity]) -> set[str]:
        """Return the users, of all tenants and of none, that have a password, ACLs, or one of these quotas."""
        principals = [each.principal.partition(":") for each in await self._acl_entries()]
        named = {entity.user for entity in quotas if isinstance(entity.user, str)}
        return {*await self._users.all(), *named, *(user for kind, _, user in principals if kind == USER)}

    async def _acl_entries(self) -> list[AclEntry]:
        try:
            return await self._acls.describe()
        except ApiError as error:
            if error.code != ErrorCode.SECURITY_DISABLED:
                raise
            return []

    async def _delete_acls(self, filters: list[AclFilter]) -> None:
        try:
            await self._acls.delete(filters)
        except ApiError as error:
            if error.code != ErrorCode.SECURITY_DISABLED:
                raise

    async def _limits(self) -> dict[str, TenantLimits]:
        entries = await self._configs.describe(_EVERY_BROKER)
        return tenants_in({each.name: _text(each) for each in entries}, _NO_DEFAULTS)


def _text(entry: ConfigEntry) -> str:
    """Return the value of a setting. A real Kafka does not know those of tenants, and hides them."""
    if entry.value is None and entry.name.startswith("ottla.tenant."):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "a broker that is not Ottla's hides the limits of tenants: ask another one",
        )
    return entry.value or ""


def _entries(tenant: str, user: str) -> list[AclEntry]:
    return [
        AclEntry(
            each,
            prefix_of(tenant),
            PatternType.PREFIXED,
            f"User:{user}",
            WILDCARD,
            AclOperation.ALL,
            AclPermission.ALLOW,
        )
        for each in _OWNED
    ]
