"""ListenerGssapi: GSSAPI of one listener. The service's key is in a keytab, and rules turn names in tickets into users.

The library reads files (keytab, replay cache), so each step of an exchange is taken in a worker thread. The keytab is
read anew for each exchange: a new key in it is used at once.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

import gssapi

from ottla.client.security.gss_library import GSSError, LibraryContext, failure_of
from ottla.model.config import Config
from ottla.model.settings.sasl import SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES, SASL_KERBEROS_SERVICE_NAME
from ottla.security.kerberos_names import KerberosRules
from ottla.security.sasl.exchange import Authenticated
from ottla.security.sasl.gssapi import GssServer, local_name
from ottla.security.sasl.jaas import LoginModule
from ottla.security.sasl.kerberos_login import KerberosLogin
from ottla.server.loop.runtime import Runtime


class GssConversation:
    """One exchange of a connection, in worker threads."""

    claimed = ""  # the client's name is in its ticket, which only the library reads

    def __init__(self, exchange: GssServer, runtime: Runtime) -> None:
        self._exchange = exchange
        self._runtime = runtime

    def respond(self, message: bytes) -> Awaitable[bytes | Authenticated]:
        return self._runtime.in_worker(self._exchange.respond, message)


class ListenerGssapi:
    def __init__(self, config: Config, module: LoginModule, runtime: Runtime) -> None:
        """Raise ValueError if the settings are wrong, or the keytab does not have the key."""
        login = KerberosLogin.of(module, config[SASL_KERBEROS_SERVICE_NAME] or "").for_server()
        self._runtime = runtime
        self._credentials = _service_credentials(login)
        try:
            self._rules = KerberosRules(config[SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES], _default_realm())
        except ValueError as error:
            raise ValueError(f"{SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES.name}: {error}") from None

    def new_conversation(self) -> GssConversation:
        context = LibraryContext(gssapi.SecurityContext(creds=self._credentials, usage="accept"), mutual=False)
        return GssConversation(GssServer(context, partial(local_name, self._rules)), self._runtime)


def _service_credentials(login: KerberosLogin) -> gssapi.Credentials:
    try:
        return gssapi.Credentials(
            name=gssapi.Name(login.principal, gssapi.NameType.kerberos_principal),
            mechs=[gssapi.MechType.kerberos],
            usage="accept",
            store={"keytab": f"FILE:{login.keytab}"} if login.keytab else None,
        )
    except GSSError as error:
        place = f"keytab {login.keytab}" if login.keytab else "default keytab"
        raise ValueError(f"the {place} cannot be used for {login.principal}: {failure_of(error)}") from None


def _default_realm() -> str:
    """Return the realm of names without one; empty if Kerberos is not set up to have one."""
    try:
        name = gssapi.Name("name", gssapi.NameType.kerberos_principal).canonicalize(gssapi.MechType.kerberos)
    except GSSError:
        return ""
    return str(name).rpartition("@")[2]
