"""TopicRules: what the topics of one request must not exceed: the topic policy, and the partition limits of tenants."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cluster.view import MetadataView
from ottla.machine.stepped import Steps
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import METADATA_RECORDS_PER_SLICE
from ottla.model.resources import ResourceType
from ottla.model.setting import UNLIMITED
from ottla.model.tenancy.tenants import tenant_in, tenants_in
from ottla.model.tenancy.topic_policy import TopicPolicy


class TopicRules:
    def __init__(self, policy: TopicPolicy | None, limits: dict[str, int], counts: dict[str, int]) -> None:
        """`limits` and `counts` are the allowed and the present partitions of tenants that the request names."""
        self._policy = policy
        self._limits = limits
        self._counts = counts

    def admit(self, topic: str, new: int, total: int, replication_factor: int, settings: Config | None = None) -> None:
        """Refuse a topic that breaks a rule, or count its new partitions; `settings` are those of a new topic."""
        if self._policy is not None:
            if settings is not None:
                self._policy.check_name(topic)
                self._policy.check_settings(topic, settings)
            self._policy.check_partitions(topic, total)
            self._policy.check_replication(topic, replication_factor)
        tenant = tenant_in(topic)
        if tenant not in self._limits:
            return
        limit, after = self._limits[tenant], self._counts[tenant] + new
        if after > limit:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION, f"Tenant {tenant} would have {after} partitions, allowed are {limit}."
            )
        self._counts[tenant] = after


def rules_for(view: MetadataView, topics: Iterable[str], *, exempt: bool) -> Steps[TopicRules]:
    """Return the rules for a request about these topics. `exempt`: the topic policy does not apply."""
    policy = None if exempt else TopicPolicy(view.config())
    limited: dict[str, int] = {}
    texts = view.state.config(ResourceType.BROKER, "")
    if texts:
        named = {tenant_in(topic) for topic in topics}
        tenants = tenants_in(texts, view.defaults)
        limited = {name: each.partitions for name, each in tenants.items() if name in named}
        limited = {name: limit for name, limit in limited.items() if limit != UNLIMITED}
    counts = dict.fromkeys(limited, 0)
    if limited:
        for number, topic in enumerate(tuple(view.state.topics.values()), start=1):
            tenant = tenant_in(topic.name)
            if tenant in counts:
                counts[tenant] += len(topic.partitions)
            if number % METADATA_RECORDS_PER_SLICE == 0:
                yield
    return TopicRules(policy, limited, counts)
