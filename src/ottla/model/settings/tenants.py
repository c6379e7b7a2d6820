"""Tenants. Limits of tenants: a tenant exists while one of these settings is set for it (`<setting>@<tenant>`)."""

from ottla.model.section import CLUSTER_WIDE, Section
from ottla.model.setting import UNLIMITED, SettingScope
from ottla.model.validators import at_least

tenants = Section(
    "Tenants",
    "Limits of each tenant. `<name>@<tenant>` is the limit of one tenant, which `ottla tenant create` sets.",
)

OTTLA_TENANT_STORAGE_MAX_BYTES = tenants.int64(
    "ottla.tenant.storage.max.bytes",
    UNLIMITED,
    "Bytes of a tenant, each partition counted once. Over it, writes get POLICY_VIOLATION; -1 is unlimited.",
    valid=at_least(UNLIMITED),
    dynamic=CLUSTER_WIDE,
    scope=SettingScope.TENANT,
)
OTTLA_TENANT_PARTITIONS_MAX = tenants.int32(
    "ottla.tenant.partitions.max",
    UNLIMITED,
    "Partitions of all topics of a tenant; -1 is unlimited.",
    valid=at_least(UNLIMITED),
    dynamic=CLUSTER_WIDE,
    scope=SettingScope.TENANT,
)
OTTLA_TENANT_CONNECTIONS_MAX = tenants.int32(
    "ottla.tenant.connections.max",
    UNLIMITED,
    "Connections of a tenant's users to one broker; -1 is unlimited.",
    valid=at_least(UNLIMITED),
    dynamic=CLUSTER_WIDE,
    scope=SettingScope.TENANT,
)
