"""The settings by which brokers allow more than access control entries do. Brokers hide their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.settings.authorizer import ALLOW_EVERYONE_IF_NO_ACL_FOUND, SUPER_USERS
from ottla.operations.broker_settings import settings_of_a_broker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.admin import Admin

_OPTIONS: Mapping[str, str] = {SUPER_USERS.name: "--super-user", ALLOW_EVERYONE_IF_NO_ACL_FOUND.name: "--open"}


async def unseen_settings(admin: Admin) -> dict[str, str]:
    """Return the settings that may allow more than the entries do, each with the option that gives its value.

    Brokers hide the values, as Kafka does. A setting that is not in a broker's answer is not set. A client that may
    not ask sees nothing, so both may be set.
    """
    entries = await settings_of_a_broker(admin)
    if entries is None:
        return dict(_OPTIONS)
    return {each.name: _OPTIONS[each.name] for each in entries if each.name in _OPTIONS and each.value is None}
