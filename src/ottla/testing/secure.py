"""A secured broker for tests: TLS with a certificate of a development authority, SCRAM users, and ACLs that are on.

The same settings as those of `ottla up --secure` (`ottla.security.development`), but in the test process: its user
`admin` may do everything, and users that a test adds may do what the test allows them.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.client.admin.new_users import checked_user
from ottla.client.blocking.blocking import Blocking
from ottla.model.ids import random_uuid, uuid_text
from ottla.model.limits import SCRAM_ITERATIONS_MIN
from ottla.model.settings.authorizer import AUTHORIZER_CLASS_NAME, STANDARD_AUTHORIZER
from ottla.model.settings.network import LISTENERS
from ottla.model.settings.security import SSL_KEYSTORE_LOCATION
from ottla.security import development
from ottla.security.acl_effect import effect_problem
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import ANY, CLUSTER_NAME, WILDCARD, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.development import ADMIN, CLIENT_LISTENER, LOOPBACK_HOSTS, NODE
from ottla.security.principal import USER
from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS
from ottla.server.ports.os_disk import OsDisk
from ottla.server.settings.configs import Configs
from ottla.server.storage.formatting import format_directories
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.certificates import issue, make_authority

if TYPE_CHECKING:
    from ottla.testing.registry import Registry

_PASSWORD_BYTES: Final = 12


class SecureBroker(EmbeddedBroker):
    """An `EmbeddedBroker` without a plaintext port: TLS, and SCRAM-SHA-512 as its only mechanism. `security` are the
    settings for Ottla's clients, `client_settings()` those for librdkafka and confluent-kafka, each with `user` for one
    that `add_user` added.
    """

    def __init__(self, data_dir: Path | str, settings: Mapping[str, object] | None = None) -> None:
        """Raises ValueError for an unknown setting, and without an authorizer: everybody might do everything."""
        if not str((settings or {}).get(AUTHORIZER_CLASS_NAME.name, STANDARD_AUTHORIZER)).strip():
            raise ValueError(f"a SecureBroker has ACLs: {AUTHORIZER_CLASS_NAME.name} cannot be empty")
        folder = Path(data_dir).with_name(f"{Path(data_dir).name}-secure")
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = folder / "ca.pem"  # what clients trust
        self._certificate = folder / "node.pem"
        self._passwords = {user: secrets.token_urlsafe(_PASSWORD_BYTES) for user in (ADMIN, NODE)}
        now = datetime.now(UTC)
        made = make_authority("Ottla test CA", now)
        self.authority.write_text(made.certificates)
        _write_secret(self._certificate, issue(made, NODE, LOOPBACK_HOSTS, now, server=True).text)
        own = {
            LISTENERS.name: f"{CLIENT_LISTENER}://127.0.0.1:0",
            **development.node_settings(str(self.authority), self._passwords[NODE]),
            SSL_KEYSTORE_LOCATION.name: str(self._certificate),
        }
        super().__init__(data_dir, {**own, **(settings or {})})
        self._format()

    # --- settings of clients

    @property
    def security(self) -> Mapping[str, str]:
        """The value for `security` of Ottla's clients: they log in as `admin`."""
        return self.security_of(ADMIN)

    def security_of(self, user: str) -> dict[str, str]:
        """Settings of Ottla's clients; as all settings of clients, ValueError for a user that nobody added."""
        return development.own_settings(str(self.authority), user, self._password_of(user))

    def client_settings(self, user: str = ADMIN) -> dict[str, str]:
        """Settings of librdkafka, with the addresses of the broker: `Producer(broker.client_settings())`."""
        settings = development.librdkafka_settings(str(self.authority), user, self._password_of(user))
        return {"bootstrap.servers": self.bootstrap, **settings}

    def java_settings(self, user: str = ADMIN) -> dict[str, str]:
        """Settings of Kafka's own clients and tools, with the addresses of the broker."""
        settings = development.java_settings(str(self.authority), user, self._password_of(user))
        return {"bootstrap.servers": self.bootstrap, **settings}

    def registry_security_of(self, user: str = ADMIN) -> dict[str, str]:
        """Settings of Ottla's client of the registry."""
        settings = development.registry_client_settings(str(self.authority))
        settings["basic.auth.credentials.source"] = "USER_INFO"
        return {**settings, "basic.auth.user.info": f"{user}:{self._password_of(user)}"}

    def registry_client_settings(self, user: str = ADMIN) -> dict[str, str]:
        """Settings of confluent-kafka's SchemaRegistryClient, with the URL of the registry."""
        return development.confluent_registry_settings(
            self.registry.url, str(self.authority), user, self._password_of(user)
        )

    def _password_of(self, user: str) -> str:
        if user not in self._passwords:
            known = ", ".join(each for each in self._passwords if each != NODE)
            raise ValueError(f"there is no user {user!r} (there is {known}): add_user({user!r}) adds it")
        return self._passwords[user]

    # --- users and their rights

    def add_user(self, user: str, password: str | None = None) -> str:
        """Add a user without rights, or change its password; return the password."""
        password = secrets.token_urlsafe(_PASSWORD_BYTES) if password is None else password
        with Blocking(self.bootstrap, security=self.security) as client:
            client.admin.users.set_password(user, password, mechanism=SCRAM_MECHANISMS[development.MECHANISM])
        self._passwords[user] = password
        return password

    def allow(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        prefixed: bool = False,
    ) -> None:
        """Allow operations (`"Read"`, `"Write"`, … or `"All"`) on what is named, or on the cluster if nothing is.

        Raises ValueError for what can have no effect: no operation, or one that nobody needs on such a resource.
        """
        principal = f"{USER}:{checked_user(user)}"
        allowed = _operations(operations)
        named = [
            (AclResourceType.TOPIC, topic),
            (AclResourceType.GROUP, group),
            (AclResourceType.TRANSACTIONAL_ID, transactional_id),
        ]
        resources = [(kind, name) for kind, name in named if name is not None]
        pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
        if not resources:
            resources = [(AclResourceType.CLUSTER, CLUSTER_NAME)]
        problem = effect_problem(resources, allowed, "prefixed=True" if prefixed else None)
        if problem is not None:
            raise ValueError(problem if any(each for _, each in named) else f"{problem}; topic=, group= name others")
        entries = [
            AclEntry(kind, name, pattern, principal, WILDCARD, operation, AclPermission.ALLOW)
            for kind, name in resources
            for operation in allowed
        ]
        with Blocking(self.bootstrap, security=self.security) as client:
            client.run(client.admin.inner.acls.create(entries))

    # --- the broker and its registry

    def _new_registry(self) -> Registry:
        from ottla.testing.registry import Registry

        own = development.registry_settings(str(self.authority), str(self._certificate), self._passwords[NODE])
        return Registry(self.bootstrap, settings={LISTENERS.name: "https://127.0.0.1:0", **own})

    def _format(self) -> None:
        """Format the empty data directory, so that the users are known from the first start on."""
        path = str(self.data_dir)
        self.data_dir.mkdir(parents=True, exist_ok=True)
        rng = random.SystemRandom()
        format_directories(
            [(path, OsDisk(path))],
            path,
            node_id=Configs(self.settings).node_id,
            cluster_id=uuid_text(random_uuid(rng)),
            voters=None,
            now_ms=time.time_ns() // 1_000_000,
            rng=rng,
            users=[
                development.scram_user(user, password, secrets.token_bytes, SCRAM_ITERATIONS_MIN)
                for user, password in self._passwords.items()
            ],
        )


def _operations(names: Iterable[str]) -> list[AclOperation]:
    known = {each.name.replace("_", "").lower(): each for each in AclOperation if each > ANY}
    strangers = [name for name in names if name.replace("_", "").lower() not in known]
    if strangers:
        raise ValueError(f"there is no operation {strangers[0]!r}")
    found = [known[name.replace("_", "").lower()] for name in names]
    if not found:
        raise ValueError('say what is allowed: "Read", "Write", … or "All"')
    return found


def _write_secret(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
