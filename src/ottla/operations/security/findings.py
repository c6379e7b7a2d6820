"""What an audit looks for: each check is a function of what was read, and yields findings.

| severity | meaning |
|---|---|
| high | somebody without a login, or with any login, gets at data or passwords; or clients cannot connect |
| medium | it becomes high with the next change, or only to some extent |
| low | worth a look |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from ottla.model.config import LISTENER_PREFIX
from ottla.model.limits import SCRAM_ITERATIONS_MAX, SCRAM_ITERATIONS_MIN
from ottla.model.settings.authorizer import (
    ALLOW_EVERYONE_IF_NO_ACL_FOUND,
    AUTHORIZER_CLASS_NAME,
    STANDARD_AUTHORIZER,
    SUPER_USERS,
)
from ottla.model.settings.security import SSL_CLIENT_AUTH
from ottla.security.access_rules import EVERYBODY
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation, AclPermission
from ottla.security.development import NODE
from ottla.security.host import is_loopback
from ottla.security.principal import ANONYMOUS
from ottla.security.protocol import SecurityProtocol, authenticates
from ottla.server.settings.listener_config import listener_config
from ottla.server.settings.listeners import listened, security_protocols

if TYPE_CHECKING:
    from ottla.client.admin.users import ScramInfo
    from ottla.model.node_config import NodeConfig
    from ottla.security.certificate_facts import CertificateFacts

_FIX_LISTENER = "{}:SASL_SSL in listener.security.protocol.map, with ssl.* and sasl.* (docs/security.md)"


class AuditSeverity(IntEnum):
    LOW = 1
    MEDIUM = 2
    HIGH = 3


# Settings that decide who gets in, and may be hidden; with the severity of not knowing them.
_DECISIVE = {
    ALLOW_EVERYONE_IF_NO_ACL_FOUND.name: AuditSeverity.MEDIUM,
    SSL_CLIENT_AUTH.name: AuditSeverity.MEDIUM,
    SUPER_USERS.name: AuditSeverity.LOW,
}


class AuditFinding(NamedTuple):
    """Something that is open: what it is, why it matters, and what to type against it."""

    severity: AuditSeverity
    what: str
    why: str
    fix: str


def listener_findings(where: str, node: NodeConfig, hidden: Collection[str] = ()) -> Iterator[AuditFinding]:
    """Look for listeners without authentication or encryption. `where` names the node; the values of settings in
    `hidden` are not known.
    """
    protocols = security_protocols(node.broker)
    for each in listened(node.broker):
        protocol = SecurityProtocol.__members__.get(protocols.get(each.name, each.name), SecurityProtocol.PLAINTEXT)
        what = f"{where}: listener {each.name} ({protocol.name}) at {each.host}:{each.port}"
        is_local = is_loopback(each.host)
        fix = _FIX_LISTENER.format(each.name)
        is_hidden = protocol.has_tls and f"{LISTENER_PREFIX}{each.name.lower()}.{SSL_CLIENT_AUTH.name}" in hidden
        if not is_hidden and not authenticates(protocol, listener_config(node, each.name)[SSL_CLIENT_AUTH]):
            severity = AuditSeverity.LOW if is_local else AuditSeverity.HIGH
            who = "this machine" if is_local else "another machine"
            yield AuditFinding(severity, f"{what} does not authenticate", f"whoever reaches it from {who} gets in", fix)
        if not protocol.has_tls:
            severity = (
                AuditSeverity.LOW if is_local else AuditSeverity.HIGH if protocol.has_sasl else AuditSeverity.MEDIUM
            )
            yield AuditFinding(
                severity, f"{what} is not encrypted", "others on the way can read records and passwords", fix
            )


def authorizer_findings(where: str, node: NodeConfig) -> Iterator[AuditFinding]:
    """Look for missing access control, and for what goes around it."""
    settings = node.broker
    if not settings[AUTHORIZER_CLASS_NAME]:
        is_local = all(is_loopback(each.host) for each in listened(settings))
        yield AuditFinding(
            AuditSeverity.MEDIUM if is_local else AuditSeverity.HIGH,
            f"{where}: no authorizer",
            "every client may read, write and delete everything",
            f"{AUTHORIZER_CLASS_NAME.name}={STANDARD_AUTHORIZER} and {SUPER_USERS.name}=User:admin",
        )
        return
    if settings[ALLOW_EVERYONE_IF_NO_ACL_FOUND]:
        yield AuditFinding(
            AuditSeverity.HIGH,
            f"{where}: {ALLOW_EVERYONE_IF_NO_ACL_FOUND.name}=true",
            "a resource without an entry, such as each new topic, is open to everybody",
            f"{ALLOW_EVERYONE_IF_NO_ACL_FOUND.name}=false, and `ottla acl add` for those who need it",
        )
    for user in filter(None, map(str.strip, (settings[SUPER_USERS] or "").split(";"))):
        is_anyone = user == str(ANONYMOUS)
        yield AuditFinding(
            AuditSeverity.HIGH if is_anyone else AuditSeverity.LOW,
            f"{where}: {user} is a super user",
            "nobody has to log in to be it" if is_anyone else "no entry applies to it: it may do everything",
            f"take it out of {SUPER_USERS.name} if it does not administer the cluster",
        )


def hidden_findings(where: str, hidden: Collection[str]) -> Iterator[AuditFinding]:
    """Report settings that are set and whose values brokers hide, so that they could not be checked."""
    for name in hidden:
        last = next((each for each in _DECISIVE if name == each or name.endswith(f".{each}")), None)
        if last is not None:
            yield AuditFinding(
                _DECISIVE[last],
                f"{where}: {name} is set, and brokers hide its value",
                "it may open the cluster, and was not checked",
                "ottla security audit --config server.properties, on the machine of the node",
            )


def acl_findings(entries: Iterable[AclEntry]) -> Iterator[AuditFinding]:
    """Look for entries that allow something to everybody."""
    from ottla.operations.access.entry_words import row_of, sentence

    for each in entries:
        if each.principal == EVERYBODY and each.permission == AclPermission.ALLOW:
            row = row_of(each)
            option = {"user": "user-principal"}.get(row["resource"], row["resource"])
            on = "--cluster" if option == "cluster" else f"--{option} '{each.resource_name}'"
            prefix = " --prefix" if row["pattern"] == "prefixed" else ""
            yield AuditFinding(
                AuditSeverity.HIGH if each.operation == AclOperation.ALL else AuditSeverity.MEDIUM,
                sentence(each),
                "it holds for every user, and for clients without a login",
                f"ottla acl remove --principal '{EVERYBODY}' {on}{prefix} --operation {row['operation']}",
            )


def user_findings(
    users: Mapping[str, Sequence[ScramInfo]], limited: Collection[str], *, has_default: bool
) -> Iterator[AuditFinding]:
    """Look for weak credentials, and for users without a quota (`limited` are those with one)."""
    for user, infos in users.items():
        weak = [each.mechanism.sasl_name for each in infos if each.iterations <= SCRAM_ITERATIONS_MIN]
        if weak:
            yield AuditFinding(
                AuditSeverity.LOW,
                f"user {user}: {' and '.join(weak)} with {SCRAM_ITERATIONS_MIN} iterations, the least there may be",
                "who gets hold of the metadata log can guess weak passwords quickly",
                f"ottla user passwd {user} --iterations {SCRAM_ITERATIONS_MAX}",
            )
        if not has_default and user not in limited and user != NODE:  # a quota would throttle replication
            yield AuditFinding(
                AuditSeverity.LOW,
                f"user {user} has no quota",
                "one client can take the bandwidth and the time of all others",
                f"ottla quota set --user {user} producer_byte_rate=10MiB, or --default-user for all",
            )


def certificate_findings(where: str, facts: Iterable[CertificateFacts], now: datetime) -> Iterator[AuditFinding]:
    """Look for certificates that have expired or are about to."""
    for each in facts:
        problem = each.problem(now)
        if problem is not None:
            is_over = each.days_left(now) < 0
            yield AuditFinding(
                AuditSeverity.HIGH if is_over else AuditSeverity.MEDIUM,
                f"{where}: the certificate {each.subject} {problem}",
                "clients do not connect any more" if is_over else "then clients cannot connect any more",
                "ottla tls issue NAME --host HOST --client --force, or a new one from your authority",
            )


def data_finding(path: str, mode: int) -> Iterator[AuditFinding]:
    """Look at the rights of others in a data directory (`mode`: those with which it can really be reached)."""
    if mode & 0o077:
        yield AuditFinding(
            AuditSeverity.HIGH if mode & 0o007 else AuditSeverity.MEDIUM,
            f"{path} holds records and the keys of SCRAM users, and other users of the machine can read it "
            f"(mode {mode & 0o777:o})",
            "who has the files needs no login",
            f"chmod 700 {path}",
        )


def file_finding(path: str, mode: int, holds: str) -> Iterator[AuditFinding]:
    """Look at the mode of a file that holds a secret."""
    if mode & 0o077:
        yield AuditFinding(
            AuditSeverity.HIGH if mode & 0o007 else AuditSeverity.MEDIUM,
            f"{path} holds {holds}, and other users of the machine can get at it (mode {mode & 0o777:o})",
            "who has it can pose as the node",
            f"chmod 600 {path}",
        )
