"""`client.admin` of the blocking client: every call of `ottla.client.admin`, under the same name."""

from ottla.client.admin import Admin
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
from ottla.client.blocking.faces import CoroutineRunner, Face, waits


class BlockingTopics(Face[TopicAdmin]):
    create = waits(TopicAdmin.create)
    create_each = waits(TopicAdmin.create_each)
    delete = waits(TopicAdmin.delete)
    delete_each = waits(TopicAdmin.delete_each)
    add_partitions = waits(TopicAdmin.add_partitions)
    add_partitions_each = waits(TopicAdmin.add_partitions_each)
    names = waits(TopicAdmin.names)
    all = waits(TopicAdmin.all)
    describe = waits(TopicAdmin.describe)
    describe_each = waits(TopicAdmin.describe_each)
    offsets = waits(TopicAdmin.offsets)
    offsets_each = waits(TopicAdmin.offsets_each)
    bounds = waits(TopicAdmin.bounds)
    bounds_each = waits(TopicAdmin.bounds_each)
    delete_records = waits(TopicAdmin.delete_records)
    delete_records_each = waits(TopicAdmin.delete_records_each)
    producers = waits(TopicAdmin.producers)
    producers_each = waits(TopicAdmin.producers_each)
    segments = waits(TopicAdmin.segments)
    segments_each = waits(TopicAdmin.segments_each)


class BlockingConfigs(Face[ConfigAdmin]):
    describe = waits(ConfigAdmin.describe)
    describe_each = waits(ConfigAdmin.describe_each)
    alter = waits(ConfigAdmin.alter)
    alter_each = waits(ConfigAdmin.alter_each)
    set = waits(ConfigAdmin.set)
    resources = waits(ConfigAdmin.resources)


class BlockingNodes(Face[NodeAdmin]):
    describe = waits(NodeAdmin.describe)
    api_versions = waits(NodeAdmin.api_versions)
    features = waits(NodeAdmin.features)
    log_dirs = waits(NodeAdmin.log_dirs)
    log_dirs_each = waits(NodeAdmin.log_dirs_each)
    quorum = waits(NodeAdmin.quorum)
    tenant_rates_each = waits(NodeAdmin.tenant_rates_each)
    unregister = waits(NodeAdmin.unregister)
    update_features = waits(NodeAdmin.update_features)


class BlockingReplicas(Face[ReplicaAdmin]):
    reassign = waits(ReplicaAdmin.reassign)
    reassign_each = waits(ReplicaAdmin.reassign_each)
    cancel = waits(ReplicaAdmin.cancel)
    cancel_each = waits(ReplicaAdmin.cancel_each)
    reassignments = waits(ReplicaAdmin.reassignments)
    elect = waits(ReplicaAdmin.elect)
    elect_each = waits(ReplicaAdmin.elect_each)
    move_to_disk = waits(ReplicaAdmin.move_to_disk)
    move_to_disk_each = waits(ReplicaAdmin.move_to_disk_each)


class BlockingVoters(Face[VoterAdmin]):
    quorum = waits(VoterAdmin.quorum)
    as_seen_by = waits(VoterAdmin.as_seen_by)
    controllers = waits(VoterAdmin.controllers)
    is_up = waits(VoterAdmin.is_up)
    add = waits(VoterAdmin.add)
    remove = waits(VoterAdmin.remove)


class BlockingGroups(Face[GroupAdmin]):
    all = waits(GroupAdmin.all)
    all_each = waits(GroupAdmin.all_each)
    describe = waits(GroupAdmin.describe)
    describe_each = waits(GroupAdmin.describe_each)
    describe_as = waits(GroupAdmin.describe_as)
    delete = waits(GroupAdmin.delete)
    delete_each = waits(GroupAdmin.delete_each)
    offsets = waits(GroupAdmin.offsets)
    offsets_each = waits(GroupAdmin.offsets_each)
    set_offsets = waits(GroupAdmin.set_offsets)
    set_offsets_each = waits(GroupAdmin.set_offsets_each)
    delete_offsets = waits(GroupAdmin.delete_offsets)
    delete_offsets_each = waits(GroupAdmin.delete_offsets_each)
    lag = waits(GroupAdmin.lag)
    lag_each = waits(GroupAdmin.lag_each)
    events = waits(GroupAdmin.events)


class BlockingShares(Face[ShareAdmin]):
    places = waits(ShareAdmin.places)
    places_each = waits(ShareAdmin.places_each)
    move = waits(ShareAdmin.move)
    move_each = waits(ShareAdmin.move_each)
    forget = waits(ShareAdmin.forget)
    forget_each = waits(ShareAdmin.forget_each)


class BlockingTransactions(Face[TransactionAdmin]):
    all = waits(TransactionAdmin.all)
    all_each = waits(TransactionAdmin.all_each)
    describe = waits(TransactionAdmin.describe)
    describe_each = waits(TransactionAdmin.describe_each)
    abort = waits(TransactionAdmin.abort)
    abort_each = waits(TransactionAdmin.abort_each)
    abort_in = waits(TransactionAdmin.abort_in)


class BlockingUsers(Face[UserAdmin]):
    all = waits(UserAdmin.all)
    describe = waits(UserAdmin.describe)
    describe_each = waits(UserAdmin.describe_each)
    set_password = waits(UserAdmin.set_password)
    set_password_each = waits(UserAdmin.set_password_each)
    remove = waits(UserAdmin.remove)
    remove_each = waits(UserAdmin.remove_each)


class BlockingQuotas(Face[QuotaAdmin]):
    describe = waits(QuotaAdmin.describe)
    alter = waits(QuotaAdmin.alter)
    alter_each = waits(QuotaAdmin.alter_each)


class BlockingTokens(Face[TokenAdmin]):
    create = waits(TokenAdmin.create)
    all = waits(TokenAdmin.all)
    renew = waits(TokenAdmin.renew)
    expire = waits(TokenAdmin.expire)


class BlockingTenants(Face[TenantAdmin]):
    all = waits(TenantAdmin.all)
    describe = waits(TenantAdmin.describe)
    create = waits(TenantAdmin.create)
    set_limits = waits(TenantAdmin.set_limits)
    add_user = waits(TenantAdmin.add_user)
    remove_user = waits(TenantAdmin.remove_user)
    set_quotas = waits(TenantAdmin.set_quotas)
    topics = waits(TenantAdmin.topics)
    holdings = waits(TenantAdmin.holdings)
    usage = waits(TenantAdmin.usage)
    delete = waits(TenantAdmin.delete)


class BlockingRequests(Face[RequestAdmin]):
    of = waits(RequestAdmin.of)
    of_each = waits(RequestAdmin.of_each)
    clients = waits(RequestAdmin.clients)
    clients_each = waits(RequestAdmin.clients_each)


class BlockingAdmin(Face[Admin]):
    """Administration, one noun per attribute."""

    def __init__(self, runner: CoroutineRunner, inner: Admin) -> None:
        super().__init__(runner, inner)
        self.topics = BlockingTopics(runner, inner.topics)
        self.configs = BlockingConfigs(runner, inner.configs)
        self.nodes = BlockingNodes(runner, inner.nodes)
        self.requests = BlockingRequests(runner, inner.requests)
        self.replicas = BlockingReplicas(runner, inner.replicas)
        self.voters = BlockingVoters(runner, inner.voters)
        self.groups = BlockingGroups(runner, inner.groups)
        self.shares = BlockingShares(runner, inner.shares)
        self.transactions = BlockingTransactions(runner, inner.transactions)
        self.users = BlockingUsers(runner, inner.users)
        self.quotas = BlockingQuotas(runner, inner.quotas)
        self.tokens = BlockingTokens(runner, inner.tokens)
        self.tenants = BlockingTenants(runner, inner.tenants)
