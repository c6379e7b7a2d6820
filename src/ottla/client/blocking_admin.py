"""`client.admin` of the blocking client: every call of `ottla.client.admin`, under the same name."""

from ottla.client.admin import Admin
from ottla.client.admin.configs import Configs
from ottla.client.admin.groups import Groups
from ottla.client.admin.nodes import Nodes
from ottla.client.admin.replicas import Replicas
from ottla.client.admin.shares import Shares
from ottla.client.admin.topics import Topics
from ottla.client.admin.transactions import Transactions
from ottla.client.admin.voters import Voters
from ottla.client.faces import Face, Runner, waits


class BlockingTopics(Face[Topics]):
    create = waits(Topics.create)
    create_many = waits(Topics.create_many)
    delete = waits(Topics.delete)
    delete_many = waits(Topics.delete_many)
    add_partitions = waits(Topics.add_partitions)
    names = waits(Topics.names)
    all = waits(Topics.all)
    describe = waits(Topics.describe)
    offsets = waits(Topics.offsets)
    bounds = waits(Topics.bounds)
    delete_records = waits(Topics.delete_records)
    producers = waits(Topics.producers)


class BlockingConfigs(Face[Configs]):
    describe = waits(Configs.describe)
    describe_many = waits(Configs.describe_many)
    alter = waits(Configs.alter)
    set = waits(Configs.set)
    resources = waits(Configs.resources)


class BlockingNodes(Face[Nodes]):
    describe = waits(Nodes.describe)
    api_versions = waits(Nodes.api_versions)
    features = waits(Nodes.features)
    log_dirs = waits(Nodes.log_dirs)
    quorum = waits(Nodes.quorum)
    unregister = waits(Nodes.unregister)
    update_features = waits(Nodes.update_features)


class BlockingReplicas(Face[Replicas]):
    reassign = waits(Replicas.reassign)
    cancel = waits(Replicas.cancel)
    reassignments = waits(Replicas.reassignments)
    elect = waits(Replicas.elect)
    move_to_disk = waits(Replicas.move_to_disk)


class BlockingVoters(Face[Voters]):
    quorum = waits(Voters.quorum)
    as_seen_by = waits(Voters.as_seen_by)
    controllers = waits(Voters.controllers)
    is_up = waits(Voters.is_up)
    add = waits(Voters.add)
    remove = waits(Voters.remove)


class BlockingGroups(Face[Groups]):
    all = waits(Groups.all)
    describe = waits(Groups.describe)
    delete = waits(Groups.delete)
    offsets = waits(Groups.offsets)
    set_offsets = waits(Groups.set_offsets)
    delete_offsets = waits(Groups.delete_offsets)
    lag = waits(Groups.lag)


class BlockingShares(Face[Shares]):
    places = waits(Shares.places)
    move = waits(Shares.move)
    forget = waits(Shares.forget)


class BlockingTransactions(Face[Transactions]):
    all = waits(Transactions.all)
    describe = waits(Transactions.describe)
    abort = waits(Transactions.abort)
    abort_in = waits(Transactions.abort_in)


class BlockingAdmin(Face[Admin]):
    """Administration, one noun per attribute."""

    def __init__(self, runner: Runner, inner: Admin) -> None:
        super().__init__(runner, inner)
        self.topics = BlockingTopics(runner, inner.topics)
        self.configs = BlockingConfigs(runner, inner.configs)
        self.nodes = BlockingNodes(runner, inner.nodes)
        self.replicas = BlockingReplicas(runner, inner.replicas)
        self.voters = BlockingVoters(runner, inner.voters)
        self.groups = BlockingGroups(runner, inner.groups)
        self.shares = BlockingShares(runner, inner.shares)
        self.transactions = BlockingTransactions(runner, inner.transactions)
