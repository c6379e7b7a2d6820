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
from ottla.client.blocking.faces import Face, Runner, waits


class BlockingTopics(Face[Topics]):
    create = waits(Topics.create)
    create_each = waits(Topics.create_each)
    delete = waits(Topics.delete)
    delete_each = waits(Topics.delete_each)
    add_partitions = waits(Topics.add_partitions)
    add_partitions_each = waits(Topics.add_partitions_each)
    names = waits(Topics.names)
    all = waits(Topics.all)
    describe = waits(Topics.describe)
    describe_each = waits(Topics.describe_each)
    offsets = waits(Topics.offsets)
    offsets_each = waits(Topics.offsets_each)
    bounds = waits(Topics.bounds)
    bounds_each = waits(Topics.bounds_each)
    delete_records = waits(Topics.delete_records)
    delete_records_each = waits(Topics.delete_records_each)
    producers = waits(Topics.producers)
    producers_each = waits(Topics.producers_each)


class BlockingConfigs(Face[Configs]):
    describe = waits(Configs.describe)
    describe_each = waits(Configs.describe_each)
    alter = waits(Configs.alter)
    alter_each = waits(Configs.alter_each)
    set = waits(Configs.set)
    resources = waits(Configs.resources)


class BlockingNodes(Face[Nodes]):
    describe = waits(Nodes.describe)
    api_versions = waits(Nodes.api_versions)
    features = waits(Nodes.features)
    log_dirs = waits(Nodes.log_dirs)
    log_dirs_each = waits(Nodes.log_dirs_each)
    quorum = waits(Nodes.quorum)
    unregister = waits(Nodes.unregister)
    update_features = waits(Nodes.update_features)


class BlockingReplicas(Face[Replicas]):
    reassign = waits(Replicas.reassign)
    reassign_each = waits(Replicas.reassign_each)
    cancel = waits(Replicas.cancel)
    cancel_each = waits(Replicas.cancel_each)
    reassignments = waits(Replicas.reassignments)
    elect = waits(Replicas.elect)
    elect_each = waits(Replicas.elect_each)
    move_to_disk = waits(Replicas.move_to_disk)
    move_to_disk_each = waits(Replicas.move_to_disk_each)


class BlockingVoters(Face[Voters]):
    quorum = waits(Voters.quorum)
    as_seen_by = waits(Voters.as_seen_by)
    controllers = waits(Voters.controllers)
    is_up = waits(Voters.is_up)
    add = waits(Voters.add)
    remove = waits(Voters.remove)


class BlockingGroups(Face[Groups]):
    all = waits(Groups.all)
    all_each = waits(Groups.all_each)
    describe = waits(Groups.describe)
    describe_each = waits(Groups.describe_each)
    delete = waits(Groups.delete)
    delete_each = waits(Groups.delete_each)
    offsets = waits(Groups.offsets)
    offsets_each = waits(Groups.offsets_each)
    set_offsets = waits(Groups.set_offsets)
    set_offsets_each = waits(Groups.set_offsets_each)
    delete_offsets = waits(Groups.delete_offsets)
    delete_offsets_each = waits(Groups.delete_offsets_each)
    lag = waits(Groups.lag)
    lag_each = waits(Groups.lag_each)


class BlockingShares(Face[Shares]):
    places = waits(Shares.places)
    places_each = waits(Shares.places_each)
    move = waits(Shares.move)
    move_each = waits(Shares.move_each)
    forget = waits(Shares.forget)
    forget_each = waits(Shares.forget_each)


class BlockingTransactions(Face[Transactions]):
    all = waits(Transactions.all)
    all_each = waits(Transactions.all_each)
    describe = waits(Transactions.describe)
    describe_each = waits(Transactions.describe_each)
    abort = waits(Transactions.abort)
    abort_each = waits(Transactions.abort_each)
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
