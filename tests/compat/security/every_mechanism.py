"""One node that takes every proof of who a client is: certificates, and each mechanism of SASL, with tokens of a real
provider and tickets of a real KDC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.server.security.gssapi_settings import NODE, RULES
from tests.server.security.secured import MODULES, PASSWORDS, Certificates, plain_jaas
from tests.support.clients.kerberos import HOST, SERVICE, keytab_login, with_keytab
from tests.support.clients.oauth import OAuthSecurity
from tests.support.clients.security import ClientSecurity
from tests.support.ports import free_ports
from tests.support.processes.kdc import REALM, Kdc
from tests.support.processes.oidc import OidcProvider, bearer_listener
from tests.support.requests.acls import STANDARD_AUTHORIZER

from ottla import Admin
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.sasl.scram.credentials import ScramMechanism
from ottla.testing.broker import EmbeddedBroker

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
TOKEN, CERTIFICATE = "a delegation token", "a certificate"
_USERS = ("User:alice", "User:CN=alice")
_KINDS = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID


class EveryMechanism:
    """Alice may use names that begin with hers, however she proves who she is; admin may do everything. `more` are
    the beginnings of further names that she may use.
    """

    def __init__(self, directory: Path, kdc: Kdc, more: Sequence[tuple[AclResourceType, str]] = ()) -> None:
        self._hers = [*((kind, "alice") for kind in _KINDS), *more]
        self.certificates = Certificates.make(directory / "certificates")
        self._directory = directory
        self._kdc = kdc
        self._keytab = kdc.add(f"{SERVICE}/{HOST}")
        self._alice = kdc.add("alice")
        self._ports = dict(zip(("SASL_SSL", "SSL"), free_ports(2), strict=True))
        self._ends = ExitStack()
        self._token = ("", "")

    def __enter__(self) -> EveryMechanism:
        with ExitStack() as ends:
            self.provider = OidcProvider(self._directory / "provider.log", ["alice"])
            ends.callback(self.provider.close)
            ends.enter_context(EmbeddedBroker(self._directory / "data", self._settings()))
            asyncio.run(self._prepare())
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def at(self, way: str) -> str:
        return f"{HOST}:{self._ports['SSL' if way == CERTIFICATE else 'SASL_SSL']}"

    def security(self, way: str, user: str = "alice") -> ClientSecurity:
        """What a client needs: `way` is a mechanism, TOKEN or CERTIFICATE. Admin has certificates and passwords
        only.
        """
        trusted = str(self.certificates.trusted)
        if way == CERTIFICATE:
            identity = self.certificates.authority.client(user).write(self.certificates.directory, user)
            return ClientSecurity("SSL", authority=trusted, identity=str(identity))
        if way == TOKEN:
            return ClientSecurity("SASL_SSL", "SCRAM-SHA-256", *self._token, trusted, is_token=True)
        if way == "GSSAPI":
            return with_keytab(f"{user}@{REALM}", self._alice, self.certificates.trusted)
        if way == "OAUTHBEARER":
            login = (way, user, f"{user}-secret")
            return OAuthSecurity("SASL_SSL", *login, trusted, token_url=self.provider.token_url)
        return ClientSecurity("SASL_SSL", way, user, PASSWORDS[user], trusted)

    async def _prepare(self) -> None:
        admin, alice = (self.security("PLAIN", user).java() for user in ("admin", "alice"))
        async with Admin(self.at("PLAIN"), security=admin) as client:
            for mechanism in ScramMechanism:
                await client.users.set_password("alice", PASSWORDS["alice"], mechanism=mechanism)
            await client.acls.create(
                AclEntry(kind, prefix, PatternType.PREFIXED, user, "*", AclOperation.ALL, AclPermission.ALLOW)
                for kind, prefix in self._hers
                for user in _USERS
            )
        async with Admin(self.at("PLAIN"), security=alice) as client:
            token = await client.tokens.create()
        self._token = (token.token_id, token.password)

    def _settings(self) -> dict[str, str]:
        settings = bearer_listener(self.provider) | {
            "listeners": ",".join(f"{protocol}://127.0.0.1:{port}" for protocol, port in self._ports.items()),
            "advertised.listeners": ",".join(f"{protocol}://{HOST}:{port}" for protocol, port in self._ports.items()),
            "listener.name.ssl.ssl.client.auth": "required",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.kerberos.service.name": SERVICE,
            "sasl.kerberos.principal.to.local.rules": RULES,
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:admin",
            "delegation.token.secret.key": "a key of a test, which nobody else has",
        }
        own = "listener.name.sasl_ssl"
        settings[f"{own}.plain.sasl.jaas.config"] = plain_jaas()
        settings[f"{own}.gssapi.sasl.jaas.config"] = keytab_login(NODE, self._keytab)
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"{own}.{mechanism}.sasl.jaas.config"] = f"{MODULES}.scram.ScramLoginModule required;"
        return settings | self.certificates.node()
