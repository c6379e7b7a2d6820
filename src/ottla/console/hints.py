"""Hints of the console: what a visitor can do next, and on which page. Where there is none, that of the commands."""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.operations.failures import hint_for

_RIGHTS = "the page Access, Rules, gives rights, and explains which rule decides"
_HINTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the page Topics shows what there is",
    ErrorCode.TOPIC_ALREADY_EXISTS: "its page shows it, and changes its settings",
    ErrorCode.INVALID_CONFIG: "the settings of a topic or a broker are on its page, each with what it means",
    ErrorCode.GROUP_ID_NOT_FOUND: "the page Groups shows the groups",
    ErrorCode.INVALID_PARTITIONS: "the page of the topic shows how many partitions it has",
    ErrorCode.INVALID_REPLICATION_FACTOR: "the page Brokers shows where replicas could be",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "the page Brokers shows where replicas could be",
    ErrorCode.INVALID_UPDATE_VERSION: "the page Brokers, Features, shows the levels",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the page of the topic shows the offsets that there are",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "the page Transactions shows the transactional ids",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _RIGHTS,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _RIGHTS,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: f"it needs rights on the cluster: {_RIGHTS}",
    ErrorCode.SECURITY_DISABLED: "brokers keep rules with authorizer.class.name; see docs/security.md",
    ErrorCode.POLICY_VIOLATION: "the settings of a broker have the rules for topics, the page of a tenant its limits",
    ErrorCode.MESSAGE_TOO_LARGE: "the topic's setting max.message.bytes is the bound",
}
# Pages that show what a command shows.
_PAGES = {
    "`ottla tenant list`": "the page Access, Tenants,",
    "`ottla topic list`": "the page Topics",
    "`ottla topic describe`": "the page of the topic",
    "`ottla group list`": "the page Groups",
    "`ottla cluster status`": "the page Brokers",
    "`ottla cluster quorum`": "the page Brokers, Quorum,",
    "`ottla cluster features`": "the page Brokers, Features,",
}


def console_hint(error: Exception) -> str:
    """A hint what the visitor could do next; empty if there is none."""
    if isinstance(error, ApiError) and error.code in _HINTS:
        return _HINTS[error.code]
    hint = hint_for(error) or ""
    for command, place in _PAGES.items():
        hint = hint.replace(command, place)
    return hint
