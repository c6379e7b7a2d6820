"""The exemption from the topic policy: super users need not follow it, if the setting says so."""

from __future__ import annotations

from ottla.model.settings.authorizer import SUPER_USERS
from ottla.model.settings.topic_policy import OTTLA_TOPIC_POLICY_SUPER_USERS_EXEMPT
from ottla.security.super_users import super_users
from ottla.server.api.context import Context


def is_exempt(context: Context) -> bool:
    """Return whether the rules do not apply to this client.

    They apply to what a broker asks for on behalf of its clients, as when it creates a missing topic: the principal is
    the broker's then. An Envelope has the client's own principal.
    """
    if not context.settings[OTTLA_TOPIC_POLICY_SUPER_USERS_EXEMPT]:
        return False
    return not context.connection.is_broker and str(context.principal) in super_users(context.settings[SUPER_USERS])
