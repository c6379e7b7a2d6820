"""Logins by Kerberos, in the words of each client."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.support.clients.security import ClientSecurity

SERVICE = "kafka"
HOST = "localhost"  # Java asks for a ticket for the name of an address, which is this one's
_MODULE = "com.sun.security.auth.module.Krb5LoginModule required"


def keytab_login(principal: str, keytab: Path) -> str:
    """The JAAS line of a node, or of a client, whose key is in a keytab."""
    return f'{_MODULE} useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}";'


def cache_login(principal: str, cache: Path) -> str:
    """The JAAS line of a client whose tickets are in a cache."""
    return f'{_MODULE} useTicketCache=true ticketCache="{cache}" principal="{principal}";'


class KerberosSecurity(ClientSecurity):
    """`user` is the principal, `password` its keytab. The clients in Python find their tickets by KRB5CCNAME."""

    def java(self) -> dict[str, str]:
        return self.java_tls() | {
            "sasl.mechanism": self.mechanism,
            "sasl.kerberos.service.name": SERVICE,
            "sasl.jaas.config": keytab_login(self.user, Path(self.password)),
        }

    def librdkafka(self) -> dict[str, str]:
        """For a build with GSSAPI, which the wheel of confluent-kafka is not."""
        own = {
            "security.protocol": self.protocol,
            "sasl.mechanisms": self.mechanism,
            "sasl.kerberos.service.name": SERVICE,
            "sasl.kerberos.principal": self.user,
            "sasl.kerberos.keytab": self.password,
        }
        return own | ({"ssl.ca.location": self.authority} if self.authority else {})

    def python(self) -> dict[str, Any]:
        own = {"sasl_mechanism": self.mechanism, "sasl_kerberos_service_name": SERVICE}
        return self.python_tls() | own

    def texts(self) -> dict[str, Any]:
        """Also where the realm is described: a harness may run since before there was one."""
        return super().texts() | {"realms": os.environ["KRB5_CONFIG"]}


def with_keytab(principal: str, keytab: Path, authority: Path | None = None) -> KerberosSecurity:
    """The login of a principal; over TLS if there is an authority."""
    protocol = "SASL_SSL" if authority else "SASL_PLAINTEXT"
    return KerberosSecurity(protocol, "GSSAPI", principal, str(keytab), str(authority or ""))
