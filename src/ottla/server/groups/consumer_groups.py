"""What the APIs of consumer groups have in common."""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.groups import GROUP_COORDINATOR_REBALANCE_PROTOCOLS
from ottla.server.api.context import Context

_FEATURE = "group.version"
_FIRST_LEVEL = 1


def check_enabled(context: Context) -> None:
    """Raises UNSUPPORTED_VERSION where the protocol is switched off, by a setting or by the cluster's features."""
    enabled = "consumer" in context.settings[GROUP_COORDINATOR_REBALANCE_PROTOCOLS]
    if not enabled or context.metadata.state.features.get(_FEATURE, 0) < _FIRST_LEVEL:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
