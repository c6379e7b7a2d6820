"""The settings of a broker as a command sees them: those of any broker stand for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.configs import ConfigEntry


async def settings_of_a_broker(admin: Admin) -> list[ConfigEntry] | None:
    """Return the settings of one broker; None if the client may not ask for them."""
    from ottla.model.errors import ApiError, ErrorCode
    from ottla.model.resources import Resource

    try:
        broker = (await admin.nodes.describe()).brokers[0]
        return await admin.configs.describe(Resource.broker(broker.node_id))
    except ApiError as error:
        if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return None
