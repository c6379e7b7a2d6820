"""A client's Kerberos login: tickets of a cache, or fetched from the KDC with the key of a keytab.

Tickets that a keytab brought are kept in memory, and connections share them until they have to be fetched again, which
the library does by itself.
"""

from __future__ import annotations

import hashlib
import threading

import gssapi

from ottla.client.errors import AuthenticationError, NotConnected
from ottla.client.security.gss_library import GSSError, GssUnreachable, LibraryContext, failure_of
from ottla.security.sasl.gssapi import GssClient, GssFailed
from ottla.security.sasl.kerberos_login import KerberosLogin

_lock = threading.Lock()  # one thread fetches, and the others find what it fetched


def begin_exchange(login: KerberosLogin, host: str) -> GssClient:
    """Begin an exchange with a broker of this name; blocks. Raise AuthenticationError, or NotConnected if no KDC
    answers.
    """
    service = f"{login.service}@{host}"
    try:
        with _lock:
            credentials = _credentials(login)
        flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
        inner = gssapi.SecurityContext(
            name=gssapi.Name(service, gssapi.NameType.hostbased_service),
            creds=credentials,
            mech=gssapi.MechType.kerberos,
            flags=flags,
            usage="initiate",
        )
        context = LibraryContext(inner, mutual=True)
        return GssClient(context, context.step(b""))
    except GSSError as error:
        failure = failure_of(error)
    except GssFailed as failed:
        failure = failed
    who = f"{login.principal} has" if login.principal else "there is"
    text = f"{who} no Kerberos ticket for {service}: {failure}"
    raise NotConnected(text) if isinstance(failure, GssUnreachable) else AuthenticationError(text)


def _credentials(login: KerberosLogin) -> gssapi.Credentials:
    """Return the credentials: the ticket cache comes before the keytab, as with Java."""
    if login.uses_ticket_cache or not login.uses_keytab:
        try:
            return _acquired(login.principal, {"ccache": f"FILE:{login.ticket_cache}"} if login.ticket_cache else None)
        except (GSSError, GssFailed):
            if not login.uses_keytab:
                raise
    identity = "\0".join((login.keytab, login.principal)).encode()
    kept: dict[bytes | str, bytes | str] = {"ccache": f"MEMORY:ottla-{hashlib.sha256(identity).hexdigest()}"}
    if login.keytab:
        kept["client_keytab"] = login.keytab
    return _acquired(login.principal, kept)


def _acquired(principal: str, store: dict[bytes | str, bytes | str] | None) -> gssapi.Credentials:
    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal) if principal else None
    made = gssapi.Credentials(name=name, mechs=[gssapi.MechType.kerberos], usage="initiate", store=store)
    if not made.lifetime:
        raise GssFailed("the tickets have expired")
    return made
