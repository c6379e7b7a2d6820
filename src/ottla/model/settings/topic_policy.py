"""Topic policy. Rules that the controller checks when topics are created, grow, or get other settings."""

from ottla.model.section import CLUSTER_WIDE, Section
from ottla.model.setting import UNLIMITED, SettingScope
from ottla.model.validators import Regex, at_least

topic_policy = Section(
    "Topic policy",
    "Rules for topics; a request that breaks one gets POLICY_VIOLATION. `<name>@<prefix>` takes the place of the rule "
    "for topics whose names begin with the prefix; the longest prefix counts. Internal topics are exempt.",
)

OTTLA_TOPIC_POLICY_NAME_PATTERN = topic_policy.text(
    "ottla.topic.policy.name.pattern",
    "",
    "Regular expression in RE2's syntax that the whole name of a new topic must match; empty allows every name.",
    valid=Regex(),
    dynamic=CLUSTER_WIDE,
    scope=SettingScope.TOPIC_PREFIX,
)
OTTLA_TOPIC_POLICY_PARTITIONS_MIN = topic_policy.int32(
    "ottla.topic.policy.partitions.min",
    1,
    "Partitions that a topic must have at least.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
    scope=SettingScope.TOPIC_PREFIX,
)
OTTLA_TOPIC_POLICY_PARTITIONS_MAX = topic_policy.int32(
    "ottla.topic.policy.partitions.max",
    UNLIMITED,
    "Partitions that a topic may have at most; -1 is unlimited.",
    valid=at_least(UNLIMITED),
    dynamic=CLUSTER_WIDE,
    scope=SettingScope.TOPIC_PREFIX,
)
OTTLA_TOPIC_POLICY_REPLICATION_MIN = topic_policy.int32(
    "ottla.topic.policy.replication.min",
    1,
    "Replicas that a partition must have at least.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
    scope=SettingScope.TOPIC_PREFIX,
)
OTTLA_TOPIC_POLICY_REPLICATION_MAX = topic_policy.int32(
    "ottla.topic.policy.replication.max",
    UNLIMITED,
    "Replicas that a partition may have at most; -1 is unlimited.",
    valid=at_least(UNLIMITED),
    dynamic=CLUSTER_WIDE,
    scope=SettingScope.TOPIC_PREFIX,
)
OTTLA_TOPIC_POLICY_RETENTION_MAX_MS = topic_policy.int64(
    "ottla.topic.policy.retention.max.ms",
    UNLIMITED,
    "Highest `retention.ms` of a topic whose cleanup.policy contains delete; -1 is unlimited.",
    valid=at_least(UNLIMITED),
    dynamic=CLUSTER_WIDE,
    scope=SettingScope.TOPIC_PREFIX,
)
OTTLA_TOPIC_POLICY_SUPER_USERS_EXEMPT = topic_policy.boolean(
    "ottla.topic.policy.super.users.exempt",
    False,
    "Whether super users need not follow the rules.",
    dynamic=CLUSTER_WIDE,
)
