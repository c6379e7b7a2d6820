"""Changes of this node's own settings that decide who its clients are and what they are shown: the node looks at them
before they are made, as Kafka does, because a certificate that cannot be used would be noticed by nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.cluster.commands.alter_configs import ConfigAlteration, Op
from ottla.model.config import LISTENER_PREFIX
from ottla.model.config_checks import check_broker_change
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.settings.foreign_classes import foreign_classes

_NAMES: Final = (LISTENER_PREFIX, "ssl.", "sasl.", "security.", "principal.")


def concerns_listeners(context: Context, alterations: Sequence[ConfigAlteration], *, replaces: bool) -> bool:
    """Return whether the changes have to be looked at; `replaces`: settings that are not named are removed."""
    present = context.configs.node.dynamic_broker if replaces else ()
    return any(name.startswith(_NAMES) for name in (*present, *(each.name for each in alterations)))


async def check_listeners(context: Context, alterations: Sequence[ConfigAlteration], *, replaces: bool) -> None:
    """Raise INVALID_REQUEST if the node cannot have these settings."""
    node = context.configs.node
    values = {} if replaces else dict(node.dynamic_broker)
    for name, op, text in alterations:
        if op == Op.SET and text is not None:
            values[name] = text
        elif op == Op.DELETE:
            values.pop(name, None)
    written = {name: text for name, op, text in alterations if op == Op.SET}
    check_broker_change(written, per_broker=True)
    for problem in foreign_classes({name: text for name, text in written.items() if text}):
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    await context.security.check_change(node.with_dynamic(node.dynamic_default, values))
