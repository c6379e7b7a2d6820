"""Administration of a cluster, one noun per module: `admin.topics.create(...)`, `admin.configs.describe(...)`.

Rules:
- Every call over several topics, partitions, groups or brokers has a twin `…_each` that returns `Outcomes`: a value or
  an error for each of them. The plain call raises if one of them failed, and the error says which one.
- A failure of the whole request (no broker answers, say) is not the outcome of a part: the call raises it.
"""

from ottla.client.admin.acls import AclAdmin
from ottla.client.admin.configs import ConfigAdmin
from ottla.client.admin.groups import GroupAdmin
from ottla.client.admin.nodes import NodeAdmin
from ottla.client.admin.quotas import QuotaAdmin
from ottla.client.admin.replicas import ReplicaAdmin
from ottla.client.admin.requests import RequestAdmin
from ottla.client.admin.shares import ShareAdmin
from ottla.client.admin.tenants import TenantAdmin
from ottla.client.admin.tokens import TokenAdmin
from ottla.client.admin.topics import TopicAdmin
from ottla.client.admin.transactions import TransactionAdmin
from ottla.client.admin.users import UserAdmin
from ottla.client.admin.voters import VoterAdmin
from ottla.client.closing import Closing
from ottla.client.cluster import Cluster
from ottla.client.options import ClientOptions, GivenSecurity

__all__ = ["Admin"]


class Admin(Closing):
    """Use as `async with Admin("host:port") as admin: await admin.topics.create("orders", partitions=3)`."""

    def __init__(self, cluster: Cluster | ClientOptions | str, *, security: GivenSecurity = None) -> None:
        self._owns_cluster = not isinstance(cluster, Cluster)
        self.cluster = Cluster.of(cluster, security)
        self.topics = TopicAdmin(self.cluster)
        self.configs = ConfigAdmin(self.cluster)
        self.nodes = NodeAdmin(self.cluster)
        self.replicas = ReplicaAdmin(self.cluster)
        self.voters = VoterAdmin(self.cluster)
        self.groups = GroupAdmin(self.cluster)
        self.requests = RequestAdmin(self.cluster)
        self.shares = ShareAdmin(self.cluster)
        self.transactions = TransactionAdmin(self.cluster)
        self.users = UserAdmin(self.cluster)
        self.quotas = QuotaAdmin(self.cluster)
        self.tokens = TokenAdmin(self.cluster)
        self.acls = AclAdmin(self.cluster)
        self.tenants = TenantAdmin(self.cluster)

    async def close(self) -> None:
        if self._owns_cluster:
            await self.cluster.close()
