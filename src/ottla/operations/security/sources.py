"""Where an audit reads from: a running cluster, or the server.properties of a node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.client.errors import AuthenticationError
from ottla.client.security.names import is_secret_name
from ottla.client.security.secret import Secret
from ottla.client.security.stores import read_store
from ottla.client.security.tls import Store
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.controller import METADATA_LOG_DIR
from ottla.model.settings.security import SSL_KEYSTORE_LOCATION, SSL_KEYSTORE_PASSWORD
from ottla.operations.errors import CommandError
from ottla.operations.security.findings import (
    AuditFinding,
    acl_findings,
    authorizer_findings,
    certificate_findings,
    data_finding,
    file_finding,
    hidden_findings,
    listener_findings,
    user_findings,
)
from ottla.operations.threads import BlockingWork, in_thread
from ottla.security.certificate_facts import read_certificates
from ottla.security.protocol import SecurityProtocol
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import broker_endpoints
from ottla.server.settings.listener_config import listener_config
from ottla.server.settings.listeners import listened, security_protocols

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.security.certificate_facts import CertificateFacts

# Names by which a file is one of a node: files of clients, too, have ssl., sasl., security. and timeouts.
_OF_NODES = (
    "listener",
    "advertised.listeners",
    "inter.broker.",
    "process.roles",
    "node.id",
    "broker.",
    "controller.",
    "log.",
    "authorizer.",
    "super.users",
    "allow.everyone.",
)
_NO_ACLS = (ErrorCode.SECURITY_DISABLED,)


def file_findings(path: Path, warn: Callable[[str], None]) -> Iterator[AuditFinding]:
    """Audit a server.properties: its settings, and the files that it names. `warn` is told what was not checked."""
    from ottla.operations.settings_file import read_settings

    values = read_settings(path)
    if not any(name.startswith(_OF_NODES) for name in values):
        raise CommandError(
            f"{path} has no setting of a node, so there is nothing to audit",
            "give the server.properties of a node: `ottla up --secure` has DIR/node-1.properties; without --config "
            "the running cluster is audited",
        )
    yield from _settings_findings(path.name, values)
    if any(is_secret_name(name) for name in values):
        yield from file_finding(str(path), path.stat().st_mode, "passwords")
    for directory in _data_directories(values):
        if directory.is_dir():
            yield from data_finding(str(directory), rights_of_others(directory))
    for store in keystores_of(values):
        try:
            mode = Path(store.path).stat().st_mode
        except OSError as error:
            raise CommandError(f"{store.path} cannot be read: {error.strerror}", f"{path} names it") from None
        yield from file_finding(store.path, mode, "a private key")
        try:
            facts = read_certificates(read_store(store).certificates.encode())
        except AuthenticationError as error:
            password = "" if store.password else f"; if it is PKCS #12, {SSL_KEYSTORE_PASSWORD.name} gives its password"
            warn(f"{error}: its time was not checked{password}")
        except ValueError:
            warn(f"{store.path} holds no certificate that can be read: its time was not checked")
        else:
            yield from certificate_findings(store.path, facts, datetime.now(UTC))


async def cluster_findings(admin: Admin, warn: Callable[[str], None]) -> list[AuditFinding]:
    """Audit a running cluster, by what its APIs tell. `warn` is told what was not checked."""
    from ottla.client.admin.quotas import QuotaName
    from ottla.model.resources import Resource

    found: list[AuditFinding] = []
    description = await admin.nodes.describe()
    for broker in description.brokers:
        entries = await admin.configs.describe(Resource.broker(broker.node_id))
        values = {each.name: each.value for each in entries if not each.is_default and each.value is not None}
        where = f"broker {broker.node_id}"
        hidden = [each.name for each in entries if each.value is None and each.is_sensitive]
        found += _settings_findings(where, values, hidden)
        shown = await in_thread(BlockingWork.nodes, shown_certificates, values, warn)
        for place, facts in shown.items():
            found += certificate_findings(f"{where} at {place}", [facts], datetime.now(UTC))
    try:
        found += acl_findings(await admin.acls.describe())
    except ApiError as error:
        if error.code not in _NO_ACLS:
            raise
    quotas = [each.user for each in await admin.quotas.describe()]
    limited = [user for user in quotas if isinstance(user, str)]
    found += user_findings(await admin.users.all(), limited, has_default=QuotaName.DEFAULT in quotas)
    return found


def _settings_findings(where: str, values: Mapping[str, str], hidden: Collection[str] = ()) -> Iterator[AuditFinding]:
    node = Configs(values).node
    yield from listener_findings(where, node, hidden)
    yield from authorizer_findings(where, node)
    yield from hidden_findings(where, hidden)


def _data_directories(values: Mapping[str, str]) -> list[Path]:
    configs = Configs(values)
    metadata = configs.broker[METADATA_LOG_DIR]
    return [Path(each) for each in dict.fromkeys([*configs.log_dirs(), *([metadata] if metadata else [])])]


def rights_of_others(directory: Path) -> int:
    """Return the mode of a directory, with the rights of others taken away where a directory above keeps them out."""
    mode = directory.stat().st_mode & 0o777
    for above in directory.absolute().parents:
        entered = above.stat().st_mode
        for who in (0o070, 0o007):
            if not entered & who & 0o011:
                mode &= ~who
    return mode


def keystores_of(values: Mapping[str, str]) -> list[Store]:
    """Return the keystores of all TLS listeners that are files, each with its password."""
    node = Configs(values).node
    protocols = security_protocols(node.broker)
    found: dict[str, Store] = {}
    for each in listened(node.broker):
        if SecurityProtocol.__members__.get(protocols.get(each.name, ""), SecurityProtocol.PLAINTEXT).has_tls:
            own = listener_config(node, each.name)
            path, password = own[SSL_KEYSTORE_LOCATION], own[SSL_KEYSTORE_PASSWORD]
            if path:
                secret = Secret(password) if password else None
                found[path] = Store(SSL_KEYSTORE_LOCATION.name, path=path, password=secret)
    return list(found.values())


def shown_certificates(values: Mapping[str, str], warn: Callable[[str], None]) -> dict[str, CertificateFacts]:
    """Return the certificates that the TLS listeners of a broker show, by address. `warn` is told which do not."""
    from ottla.operations.security.certificates import shown_by

    found = {}
    for each in broker_endpoints(Configs(values).broker):
        if SecurityProtocol(each.security_protocol).has_tls and each.port:
            try:
                found[f"{each.host}:{each.port}"] = shown_by(each.host, each.port)
            except CommandError as error:
                warn(f"{error}: its certificate was not checked")
    return found
