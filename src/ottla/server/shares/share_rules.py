"""The rules of share groups, derived from their settings once per change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ottla.model.config import Config
from ottla.model.group_settings import (
    SHARE_AUTO_OFFSET_RESET,
    SHARE_DELAYED_DELIVERY_ENABLE,
    SHARE_DELIVERY_COUNT_LIMIT,
    SHARE_DLQ_TOPIC,
    SHARE_ISOLATION_LEVEL,
    SHARE_KEY_ORDERED,
    SHARE_PARTITION_MAX_RECORD_LOCKS,
    SHARE_RECORD_LOCK_DURATION_MS,
    SHARE_RENEW_ACKNOWLEDGE_ENABLE,
    SHARE_RETRY_BACKOFF_MAX_MS,
    SHARE_RETRY_BACKOFF_MS,
)
from ottla.model.node_config import NodeConfig
from ottla.model.resources import ResourceType
from ottla.replica.partition import READ_COMMITTED, READ_UNCOMMITTED, Partition
from ottla.replica.reading import EARLIEST, LATEST
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.settings.configs import Configs
from ottla.server.storage.time_searches import Search
from ottla.shares.partition.terms import Rules

_DURATION = re.compile(r"\+?P(?:\+?(\d+)D)?(?:T(?:\+?(\d+)H)?(?:\+?(\d+)M)?(?:\+?(\d+(?:\.\d*)?)S)?)?", re.IGNORECASE)
_SECONDS = (86_400, 3_600, 60, 1)


class GroupRules(NamedTuple):
    """The rules for records, and the settings that only the server needs."""

    records: Rules
    isolation: int
    reset: str
    dlq_topic: str
    renew: bool


class ShareRules:
    """The rules of each group; settings may change at any time."""

    def __init__(self, configs: Configs, metadata: MetadataHost) -> None:
        self._configs = configs
        self._metadata = metadata
        self._known: dict[str, tuple[NodeConfig, Mapping[str, str], GroupRules]] = {}

    def of(self, group_id: str) -> GroupRules:
        node = self._configs.node
        own = self._metadata.state.config(ResourceType.GROUP, group_id)
        known = self._known.get(group_id)
        if known is not None and known[0] is node and known[1] == own:
            return known[2]
        rules = _rules(node.group(own))
        self._known[group_id] = node, dict(own), rules
        return rules

    def forget(self, group_id: str) -> None:
        self._known.pop(group_id, None)


def _rules(config: Config) -> GroupRules:
    return GroupRules(
        Rules(
            lock_ms=config[SHARE_RECORD_LOCK_DURATION_MS],
            delivery_limit=config[SHARE_DELIVERY_COUNT_LIMIT],
            locks_max=config[SHARE_PARTITION_MAX_RECORD_LOCKS],
            backoff_ms=config[SHARE_RETRY_BACKOFF_MS],
            backoff_max_ms=config[SHARE_RETRY_BACKOFF_MAX_MS],
            key_ordered=config[SHARE_KEY_ORDERED],
            delayed=config[SHARE_DELAYED_DELIVERY_ENABLE],
        ),
        READ_COMMITTED if config[SHARE_ISOLATION_LEVEL] == "read_committed" else READ_UNCOMMITTED,
        config[SHARE_AUTO_OFFSET_RESET],
        config[SHARE_DLQ_TOPIC],
        config[SHARE_RENEW_ACKNOWLEDGE_ENABLE],
    )


def first_offset(partition: Partition, reset: str, now_ms: int, search: Search) -> int:
    """Return where a group starts that has never read this partition. Raises KAFKA_STORAGE_ERROR and the errors of
    `search`.
    """
    word, _, duration = reset.partition(":")
    if word == "earliest":
        moment = EARLIEST
    elif word == "latest":
        moment = LATEST
    else:
        moment = max(now_ms - _duration_ms(duration), 0)
    found = partition.list_offset(moment, search=search)
    return found.offset if found is not None else partition.high_watermark


def _duration_ms(text: str) -> int:
    match = _DURATION.fullmatch(text)
    assert match is not None, "checked when it was set"
    return sum(
        int(float(part) * seconds * 1000) for part, seconds in zip(match.groups(), _SECONDS, strict=True) if part
    )
