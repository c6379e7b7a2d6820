"""Words of users as access control entries. What is wrong with them raises ValueError."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.operations.access.entry_words import word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.security.acl_entry import AclFilter
    from ottla.security.acls import AclOperation, AclResourceType

NAME_BYTES_MAX = 32_000  # with the type of a principal, such a name fits into a request


def resources_of(
    topics: Sequence[str],
    groups: Sequence[str],
    cluster: bool,
    transactional_ids: Sequence[str],
    tokens: Sequence[str],
    users: Sequence[str],
) -> Iterator[tuple[AclResourceType, str]]:
    """The resources that are named, each with its type."""
    from ottla.security.acls import CLUSTER_NAME, AclResourceType

    for kind, names in (
        (AclResourceType.TOPIC, topics),
        (AclResourceType.GROUP, groups),
        (AclResourceType.CLUSTER, [CLUSTER_NAME] * cluster),
        (AclResourceType.TRANSACTIONAL_ID, transactional_ids),
        (AclResourceType.DELEGATION_TOKEN, tokens),
        (AclResourceType.USER, users),
    ):
        for name in names:
            if not name:
                raise ValueError("the name of a resource is empty")
            if len(name.encode("utf-8", "replace")) > NAME_BYTES_MAX:
                raise ValueError(f"a name of {len(name)} characters is too long: no resource has such a name")
            yield kind, name


def check_resources(resources: Sequence[object]) -> None:
    """Refuse a command that names no resource."""
    if not resources:
        raise ValueError("say on what: --topic, --group, --cluster, --transactional-id, ...")


def principal_of(text: str) -> str:
    """The principal `Type:name`; a name alone is that of a user."""
    from ottla.security.principal import USER, parse_principal

    if len(text.encode("utf-8", "replace")) > NAME_BYTES_MAX:
        raise ValueError(f"a principal of {len(text)} characters is too long: no client has such a name")
    return str(parse_principal(text if ":" in text else f"{USER}:{text}"))


def operation_of(text: str) -> AclOperation:
    """The operation that a word names, such as `read` or `alter-configs`."""
    from ottla.security.acls import AclOperation

    names = [each for each in AclOperation if each >= AclOperation.ALL]
    found = [each for each in names if word(each) == text.lower().replace("_", "-")]
    if not found:
        raise ValueError(f"{text!r} is none of {', '.join(map(word, names))}")
    return found[0]


def needed(
    resources: Sequence[tuple[AclResourceType, str]], *, producer: bool, consumer: bool
) -> list[tuple[AclOperation, tuple[AclResourceType, str]]]:
    """Return what a producer or a consumer needs, as kafka-acls has it."""
    from ottla.security.acls import AclOperation, AclResourceType

    write, read, describe = AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE
    needs: list[tuple[AclOperation, AclResourceType]] = []
    if producer:
        needs += [(each, AclResourceType.TOPIC) for each in (write, describe, AclOperation.CREATE)]
        needs += [(each, AclResourceType.TRANSACTIONAL_ID) for each in (write, describe)]
    if consumer:
        needs += [(each, AclResourceType.TOPIC) for each in (read, describe)]
        needs += [(read, AclResourceType.GROUP)]
    if consumer and not {AclResourceType.TOPIC, AclResourceType.GROUP} <= {kind for kind, _ in resources}:
        raise ValueError("--consumer needs a --topic and a --group")
    if producer and AclResourceType.TOPIC not in {kind for kind, _ in resources}:
        raise ValueError("--producer needs a --topic")
    return [(each, resource) for each, kind in needs for resource in resources if resource[0] is kind]


def place_of(kind: AclResourceType, name: str, *, prefix: bool) -> tuple[AclResourceType, str, int]:
    """The resource and the pattern of its name. There is one cluster, so its name is no prefix."""
    from ottla.security.acls import AclResourceType, PatternType

    is_prefix = prefix and kind is not AclResourceType.CLUSTER
    return kind, name, PatternType.PREFIXED if is_prefix else PatternType.LITERAL


def filters_of(
    principal: str | None,
    resources: Sequence[tuple[AclResourceType, str]],
    *,
    prefix: bool,
    operations: Sequence[str],
    hosts: Sequence[str],
) -> Iterator[AclFilter]:
    """The filters that find the entries of these words; what is not named may be anything."""
    from ottla.security.acl_entry import AclFilter
    from ottla.security.acls import AclOperation, AclResourceType, PatternType

    who = None if principal is None else principal_of(principal)
    places: list[tuple[int, str | None, int]] = [place_of(*each, prefix=prefix) for each in resources]
    for place in places or [(AclResourceType.ANY, None, PatternType.PREFIXED if prefix else PatternType.ANY)]:
        for operation in [operation_of(each) for each in operations] or [AclOperation.ANY]:
            for host in (*hosts,) or (None,):
                yield AclFilter(*place, who, host, operation)


def check_hosts(hosts: Iterable[str]) -> None:
    """Refuse what no client's address can equal: ACLs know addresses, not names."""
    from ipaddress import ip_address

    for host in hosts:
        try:
            if host != "*":
                ip_address(host)
        except ValueError:
            raise ValueError(f"{host} is no IP address; ACLs do not look up names") from None
