"""The files of `ottla up --secure`: a folder `secure` in the directory of a local cluster.

| file | what it is |
|---|---|
| `ca.pem`, `ca.key` | the development authority |
| `node-1.pem` | certificate and key of a node |
| `registry.pem`, `console.pem` | certificates and keys of the schema registry and the console |
| `admin.password`, `node.password` | passwords of the users `admin` (yours) and `node` (of the nodes) |
| `client.properties` and others | settings of clients that log in as `admin`; see `secure_clients` |

Rules:
- Everything is made once and kept. Only certificates are made anew, when they are about to expire or lack a host. The
  passwords of a cluster that exists, and its authority, are never invented: a lost password is restored from the
  settings that have it, or asked for.
- Clients and brokers log in to brokers with SCRAM-SHA-512 over TLS. Nodes prove themselves to controllers by their
  certificates, because no user is known before the metadata was read. The certificates of nodes have the unit (OU) that
  the rule of the controllers' listener asks for; `ottla tls issue` does not make such certificates.
- Whoever can read the folder can act as the administrator, so only its owner can read it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.cli.terminal.plain import print_warning
from ottla.cli.terminal.safe_files import make_directory, write_secret
from ottla.model.config import LISTENER_PREFIX
from ottla.model.settings.network import ADVERTISED_LISTENERS, LISTENER_SECURITY_PROTOCOL_MAP, LISTENERS
from ottla.model.settings.sasl import SASL_JAAS_CONFIG
from ottla.model.settings.security import SSL_CLIENT_AUTH, SSL_KEYSTORE_LOCATION, SSL_PRINCIPAL_MAPPING_RULES
from ottla.operations.addresses import host_and_port
from ottla.operations.errors import CommandError
from ottla.security.development import ADMIN, CLIENT_LISTENER, LOOPBACK_HOSTS, NODE, node_settings, scram_user

if TYPE_CHECKING:
    from ottla.security.sasl.scram.arguments import ScramUser

FOLDER: Final = "secure"
REGISTRY: Final = "registry"
CONSOLE: Final = "console"
CLIENT_FILE: Final = "client.properties"
LIBRDKAFKA_FILE: Final = "librdkafka.properties"
REGISTRY_CLIENT_FILE: Final = "registry-client.properties"
FILES_OF_ADMIN: Final = (CLIENT_FILE, LIBRDKAFKA_FILE, REGISTRY_CLIENT_FILE)
_UNIT: Final = "ottla-nodes"
_PASSWORD_BYTES = 24


def renewal_of(folder: Path) -> str:
    """What to do about the files of clients that have a former password of `admin`."""
    return (
        f"write it into {folder / f'{ADMIN}.password'} and delete {', '.join(FILES_OF_ADMIN)} there: the next start of "
        "`ottla up` writes them anew"
    )


class SecureFiles:
    """The files in the folder; those that are missing are made when they are asked for."""

    def __init__(self, directory: Path) -> None:
        self.folder = (directory / FOLDER).absolute()

    @property
    def exist(self) -> bool:
        return self.folder.is_dir()

    @property
    def authority(self) -> Path:
        """The certificate that clients trust."""
        from ottla.cli.tls.files import AUTHORITY_FILE, new_authority

        path = self.folder / AUTHORITY_FILE
        if not path.exists():
            issued = sorted(each.name for each in self.folder.glob("node-*.pem"))
            if issued:
                raise CommandError(
                    f"{path} is missing: nodes and clients trust each other by it",
                    f"put it back from a backup; to make an authority and all certificates anew, delete ca.key and "
                    f"{', '.join([*issued, f'{REGISTRY}.pem', f'{CONSOLE}.pem'])} in {self.folder}",
                )
            make_directory(self.folder)
            new_authority(self.folder, "Ottla development CA", None, force=True)
        return path

    def password_file(self, user: str) -> Path:
        return self.folder / f"{user}.password"

    def password(self, user: str) -> str:
        """The password of `admin` or `node`, as it was made; a change by `ottla user passwd` is not seen here."""
        path = self.password_file(user)
        if not path.exists():
            make_directory(self.folder)
            write_secret(path, f"{self._lost_password(user) or secrets.token_urlsafe(_PASSWORD_BYTES)}\n")
        return path.read_text().strip()

    def _lost_password(self, user: str) -> str | None:
        """The password as the settings of clients and nodes have it; None for a cluster that is new."""
        nodes = sorted(self.folder.parent.glob("node-*.properties"))
        sources = nodes if user == NODE else [self.folder / CLIENT_FILE]
        path = self.password_file(user)
        for source in sources:
            found = _password_in(source, user) if source.exists() else None
            if found is not None:
                print_warning(f"{path} was missing: it is restored from {source}")
                return found
        if not nodes:
            return None
        raise CommandError(
            f"{path} is missing, and no settings here have the password",
            f"write the password of user {user} into it, or put it back from a backup",
        )

    def restore(self) -> None:
        """Restore lost passwords; raises CommandError if something is missing that cannot be made anew."""
        assert self.authority.exists()
        for user in (ADMIN, NODE):
            self.password(user)

    def users(self) -> list[ScramUser]:
        """The users that the first start of the cluster knows."""
        return [scram_user(user, self.password(user), secrets.token_bytes) for user in (ADMIN, NODE)]

    def settings(self, controller_listener: str) -> dict[str, str]:
        """The settings that all nodes share."""
        controllers = f"{LISTENER_PREFIX}{controller_listener.lower()}."
        return {
            LISTENER_SECURITY_PROTOCOL_MAP.name: f"{controller_listener}:SSL,{CLIENT_LISTENER}:SASL_SSL",
            controllers + SSL_CLIENT_AUTH.name: "required",
            controllers + SSL_PRINCIPAL_MAPPING_RULES.name: f"RULE:^CN=[^,]+,OU={_UNIT}$/{NODE}/,DEFAULT",
            **node_settings(str(self.authority), self.password(NODE)),
        }

    def node_settings(self, node_id: int, addresses: Iterable[str]) -> dict[str, str]:
        """The settings of one node, which is reached at these addresses: its certificate."""
        return {SSL_KEYSTORE_LOCATION.name: str(self._certificate(_stem(node_id), _hosts(addresses)))}

    def renew(self, node_id: int, values: dict[str, str]) -> None:
        """Make the certificate of a node anew if it is about to expire, or lacks a host that its settings name."""
        if values.get(SSL_KEYSTORE_LOCATION.name) == str(self._certificate_file(_stem(node_id))):
            listed = (values.get(each.name, "") for each in (LISTENERS, ADVERTISED_LISTENERS))
            self._certificate(_stem(node_id), _hosts(address.strip() for each in listed for address in each.split(",")))

    def registry_certificate(self, address: str) -> Path:
        """The certificate of the registry at this address, which controllers do not take for one of a node."""
        return self._certificate(REGISTRY, _hosts([address]))

    def console_certificate(self, address: str) -> Path:
        """The certificate of the console at this address, likewise."""
        return self._certificate(CONSOLE, _hosts([address]))

    def _certificate_file(self, stem: str) -> Path:
        return self.folder / f"{stem}.pem"

    def _certificate(self, stem: str, hosts: Sequence[str]) -> Path:
        from ottla.cli.tls.files import new_certificate

        path = self._certificate_file(stem)
        if not _is_good(path, hosts):
            assert self.authority.exists()
            of_node = stem not in (REGISTRY, CONSOLE)
            new_certificate(self.folder, path.stem, hosts, client=of_node, unit=_UNIT if of_node else None, force=True)
        return path


def _password_in(path: Path, user: str) -> str | None:
    """The password with which this file logs in as the user."""
    from ottla.model.properties import PropertiesError
    from ottla.model.settings_file import parse_settings
    from ottla.security.sasl.jaas import InvalidJaas, parse_jaas_line

    try:
        values = parse_settings(path.read_bytes(), ())
        lines = [value for name, value in values.items() if name.endswith(SASL_JAAS_CONFIG.name)]
        found = [parse_jaas_line(each).options for each in lines]
    except (OSError, PropertiesError, InvalidJaas):
        return None
    return next((each["password"] for each in found if each.get("username") == user and "password" in each), None)


def _stem(node_id: int) -> str:
    return f"node-{node_id}"


def _hosts(addresses: Iterable[str]) -> list[str]:
    """The names and addresses for the certificate of a node that is reached at these."""
    import socket

    found = list(LOOPBACK_HOSTS)
    for address in filter(None, addresses):
        host, _ = host_and_port(address, default_host="0.0.0.0")
        found += [socket.gethostname(), socket.getfqdn()] if host in ("0.0.0.0", "::") else [host]
    return list(dict.fromkeys(found))


def _is_good(path: Path, hosts: Sequence[str]) -> bool:
    from datetime import UTC, datetime

    from ottla.security.certificate_facts import read_certificates

    try:
        facts = read_certificates(path.read_bytes())[0]
    except (OSError, ValueError):
        return False
    return facts.problem(datetime.now(UTC)) is None and set(hosts) <= set(facts.hosts)
