"""Administration of a cluster, one noun per module: `admin.topics.create(...)`, `admin.configs.describe(...)`.

Rules:
- Every call over several topics, partitions, groups or brokers has a twin `…_each` that returns `Outcomes`: a value or
  an error for each of them. The plain call raises if one of them failed, and the error says which one.
- A failure of the whole request (no broker answers, say) is not the outcome of a part: the call raises it.
"""

from ottla.client.admin.configs import Configs
from ottla.client.admin.groups import Groups
from ottla.client.admin.nodes import Nodes
from ottla.client.admin.replicas import Replicas
from ottla.client.admin.shares import Shares
from ottla.client.admin.topics import Topics
from ottla.client.admin.transactions import Transactions
from ottla.client.admin.voters import Voters
from ottla.client.closing import Closing
from ottla.client.cluster import Cluster
from ottla.client.options import ClientOptions

__all__ = ["Admin"]


class Admin(Closing):
    """Use as `async with Admin("host:port") as admin: await admin.topics.create("orders", partitions=3)`."""

    def __init__(self, cluster: Cluster | ClientOptions | str) -> None:
        self._owns_cluster = not isinstance(cluster, Cluster)
        self.cluster = cluster if isinstance(cluster, Cluster) else Cluster(cluster)
        self.topics = Topics(self.cluster)
        self.configs = Configs(self.cluster)
        self.nodes = Nodes(self.cluster)
        self.replicas = Replicas(self.cluster)
        self.voters = Voters(self.cluster)
        self.groups = Groups(self.cluster)
        self.shares = Shares(self.cluster)
        self.transactions = Transactions(self.cluster)

    async def close(self) -> None:
        if self._owns_cluster:
            await self.cluster.close()
