"""Whether the logins in the files of a local secure cluster still work: those of its nodes, and that of `admin`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.model.config import LISTENER_PREFIX
from ottla.model.settings.sasl import SASL_JAAS_CONFIG
from ottla.operations.errors import CommandError
from ottla.security.development import ADMIN, CLIENT_LISTENER, MECHANISM, NODE, java_settings

if TYPE_CHECKING:
    from ottla.cli.nodes.local_cluster import LocalNode
    from ottla.cli.nodes.secure_files import SecureFiles

_JAAS = f"{LISTENER_PREFIX}{CLIENT_LISTENER.lower()}.{MECHANISM.lower()}.{SASL_JAAS_CONFIG.name}"
_CONNECT_MS = 5_000
_API_MS = 10_000


def check_own_login(node: LocalNode, files: SecureFiles, client_file: str) -> None:
    """Raise CommandError if the node refuses its own login: then nodes cannot reach each other as clients. Anything
    else that goes wrong shows elsewhere. A node with a login that was changed by hand is not looked at.
    """
    line = node.values.get(_JAAS)
    if line is None:
        return
    settings = java_settings(str(files.authority), NODE, "") | {SASL_JAAS_CONFIG.name: line}
    if not _is_refused(node, settings):
        return
    raise CommandError(
        f"the cluster runs, but its nodes cannot log in to each other as user {NODE}: it does not exist, or has "
        "another password than their property files say",
        f"add it, then start the cluster again: ottla --command-config {client_file} user add {NODE} "
        f"--password-file {files.password_file(NODE)} --mechanism {MECHANISM} (or user passwd --force, if it exists)",
    )


def is_stale_for_clients(node: LocalNode, files: SecureFiles) -> bool:
    """Whether `admin` has another password than its file says, and the files for clients that were made from it."""
    return _is_refused(node, java_settings(str(files.authority), ADMIN, files.password(ADMIN)))


def _is_refused(node: LocalNode, settings: Mapping[str, str]) -> bool:
    """Whether the node refuses the login of these settings; False if something else goes wrong."""
    from ottla.client.admin import Admin
    from ottla.client.errors import AuthenticationError, ClientError
    from ottla.client.options import ClientOptions, parse_bootstrap
    from ottla.client.security.security import as_security

    async def log_in() -> None:
        options = ClientOptions(
            parse_bootstrap(node.told_address),
            client_id="ottla-up",
            connect_timeout_ms=_CONNECT_MS,
            api_timeout_ms=_API_MS,
            security=as_security(settings),
        )
        async with Admin(options) as admin:
            await admin.nodes.describe()

    try:
        asyncio.run(log_in())
    except AuthenticationError:
        return True
    except (ClientError, OSError, ValueError):
        return False
    return False
