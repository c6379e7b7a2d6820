"""A listener with GSSAPI in a realm of the test's own, and clients that lead an exchange by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gssapi
from tests.support.clients.kerberos import HOST, SERVICE, keytab_login
from tests.support.ports import free_ports
from tests.support.processes.kdc import REALM, Kdc
from tests.support.requests.acls import STANDARD_AUTHORIZER
from tests.support.requests.raw import RawConnection

from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

NODE = f"{SERVICE}/{HOST}@{REALM}"
RULES = f"RULE:[1:$1@$0](.*-ops@{REALM})s/-ops@.*//,DEFAULT"  # carol-ops is carol


def listener(keytab: Path, **settings: str) -> dict[str, str]:
    """The settings of a node whose only listener has GSSAPI, and that logs in to itself with it."""
    (port,) = free_ports(1)
    own = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"SASL_PLAINTEXT://{HOST}:{port}",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": SERVICE,
        "sasl.kerberos.principal.to.local.rules": RULES,
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": keytab_login(NODE, keytab),
        "connection.failed.authentication.delay.ms": "10",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"User:{SERVICE}",
    }
    return own | {name.replace("_", "."): value for name, value in settings.items()}


class ByHand:
    """A client that sends what a test wants, with real tickets."""

    def __init__(self, kdc: Kdc, principal: str, keytab: Path, service: str = f"{SERVICE}@{HOST}") -> None:
        cache = kdc.tickets(principal, keytab)
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        self.context = gssapi.SecurityContext(
            name=gssapi.Name(service, gssapi.NameType.hostbased_service),
            creds=gssapi.Credentials(name=name, usage="initiate", store={"ccache": f"FILE:{cache}"}),
            mech=gssapi.MechType.kerberos,
            flags=gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.confidentiality,
            usage="initiate",
        )
        self.first = self.context.step(None) or b""

    def until_offer(self, connection: RawConnection) -> bytes:
        """Lead the exchange up to the server's offer of layers; return that."""
        begin(connection)
        assert not self.context.step(send(connection, self.first).auth_bytes)
        return self.context.unwrap(send(connection, b"").auth_bytes).message

    def choose(self, connection: RawConnection, choice: bytes, *, encrypt: bool = False) -> Any:
        return send(connection, self.context.wrap(choice, encrypt).message)


def begin(connection: RawConnection) -> None:
    answer: Any = connection.call(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert answer.error_code == 0


def send(connection: RawConnection, message: bytes) -> Any:
    return connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)
