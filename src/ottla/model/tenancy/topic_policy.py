"""TopicPolicy: the rules of `ottla.topic.policy.*` that a topic has to follow.

A rule for a prefix takes the place of the rule for all topics; of several prefixes the longest counts, for each rule by
itself. Internal topics are exempt.
"""

from collections.abc import Mapping
from typing import TypeVar

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import is_internal
from ottla.model.node_config import NodeConfig
from ottla.model.setting import UNLIMITED, Setting
from ottla.model.settings.topic_policy import (
    OTTLA_TOPIC_POLICY_NAME_PATTERN,
    OTTLA_TOPIC_POLICY_PARTITIONS_MAX,
    OTTLA_TOPIC_POLICY_PARTITIONS_MIN,
    OTTLA_TOPIC_POLICY_REPLICATION_MAX,
    OTTLA_TOPIC_POLICY_REPLICATION_MIN,
    OTTLA_TOPIC_POLICY_RETENTION_MAX_MS,
)
from ottla.model.tenancy.scoped import scoped_values
from ottla.model.topic_settings import CLEANUP_POLICY, RETENTION_MS

T = TypeVar("T")


class TopicPolicy:
    def __init__(self, node: NodeConfig) -> None:
        self._broker = node.broker
        self._texts: Mapping[str, str] = {**node.static, **node.dynamic_default, **node.dynamic_broker}

    def check_name(self, topic: str) -> None:
        """Refuse a name that does not match the pattern."""
        if is_internal(topic):
            return
        rule, pattern = self._rule(OTTLA_TOPIC_POLICY_NAME_PATTERN, topic)
        if pattern:
            from ottla.model.re2.match import Search, pattern_of  # few clusters have such a rule

            if not Search(pattern_of(pattern)).matches(topic):
                raise _broken(rule, f"the name {topic} does not match {pattern}")

    def check_partitions(self, topic: str, count: int) -> None:
        """Refuse a number of partitions."""
        low, high = OTTLA_TOPIC_POLICY_PARTITIONS_MIN, OTTLA_TOPIC_POLICY_PARTITIONS_MAX
        self._check_count(topic, count, "partitions", low, high)

    def check_replication(self, topic: str, factor: int) -> None:
        """Refuse a replication factor."""
        low, high = OTTLA_TOPIC_POLICY_REPLICATION_MIN, OTTLA_TOPIC_POLICY_REPLICATION_MAX
        self._check_count(topic, factor, "replicas", low, high)

    def check_settings(self, topic: str, settings: Config) -> None:
        """Refuse settings with which a topic would keep its records for too long."""
        if is_internal(topic) or "delete" not in settings[CLEANUP_POLICY]:
            return
        rule, highest_ms = self._rule(OTTLA_TOPIC_POLICY_RETENTION_MAX_MS, topic)
        kept_ms = settings[RETENTION_MS]
        if highest_ms != UNLIMITED and not 0 <= kept_ms <= highest_ms:
            raise _broken(rule, f"{RETENTION_MS.name} of {topic} is {kept_ms}, allowed is at most {highest_ms}")

    def _check_count(self, topic: str, count: int, what: str, low: Setting[int], high: Setting[int]) -> None:
        if is_internal(topic):
            return
        rule, least = self._rule(low, topic)
        if count < least:
            raise _broken(rule, f"{topic} would have {count} {what}, needed are at least {least}")
        rule, most = self._rule(high, topic)
        if most != UNLIMITED and count > most:
            raise _broken(rule, f"{topic} would have {count} {what}, allowed are at most {most}")

    def _rule(self, setting: Setting[T], topic: str) -> tuple[str, T]:
        """Return the name and the value of the rule for a topic."""
        found = scoped_values(setting, self._texts)
        prefix = max((each for each in found if topic.startswith(each)), key=len, default=None)
        if prefix is None:
            return setting.name, self._broker[setting]
        return f"{setting.name}@{prefix}", found[prefix]


def _broken(rule: str, problem: str) -> ApiError:
    return ApiError(ErrorCode.POLICY_VIOLATION, f"{problem} (rule {rule})")
