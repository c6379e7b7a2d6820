"""Words of forms as access rules, and rules as the words of an address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.console.call import PageCall
from ottla.console.html import Markup
from ottla.console.parts.forms import field
from ottla.console.parts.typed import TypedForm
from ottla.console.refusals import WrongInput, typed_in
from ottla.operations.access.asked import check_hosts, operation_of, resources_of
from ottla.operations.access.effect import check_effect, effective_principal
from ottla.operations.access.entry_words import word
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import WILDCARD, AclOperation, AclResourceType

PREFIX_LABEL = "all names that begin with it"
OPERATIONS = [word(each) for each in AclOperation if each >= AclOperation.ALL]
RESOURCES = ["topic", "group", "cluster", "transactional-id", "delegation-token", "user"]
_NUMBERS = ("resource_type", "pattern_type", "operation", "permission")


def principal_field(call: PageCall, typed: TypedForm) -> Markup:
    """The field for a principal."""
    given = call.query.get("principal", "")
    return field("principal", "Principal", given, hint="a user: alice, or User:alice", required=True, typed=typed)


class AskedRight(NamedTuple):
    """An operation on a resource from a host, by a principal that a client can have."""

    principal: str
    host: str
    operation: AclOperation
    resource: tuple[AclResourceType, str]


def right_of(call: PageCall, *, host: str, is_prefix: bool = False) -> AskedRight:
    """What a form asks for. Raises WrongInput, also for what can have no effect."""
    with typed_in("principal"):
        who = effective_principal(call.text("principal"))
    with typed_in("operation"):
        operation = operation_of(call.text("operation"))
    resource = _resource_of(call)
    with typed_in("host"):
        given = call.text("host", host)
        check_hosts([given])
    with typed_in("operation"):
        check_effect([(resource[0], WILDCARD)], [operation])
    with typed_in("name"):
        check_effect([resource], [operation], prefix=f'"{PREFIX_LABEL}"' if is_prefix else None)
    return AskedRight(who, given, operation, resource)


def _resource_of(call: PageCall) -> tuple[AclResourceType, str]:
    kind = call.text("resource")
    if kind not in RESOURCES:
        raise WrongInput(f"the resource is one of {', '.join(RESOURCES)}, not {kind[:40]!r}", field="resource")
    names = {each: [call.form.get("name") or call.query.get("name", "")] if each == kind else [] for each in RESOURCES}
    with typed_in("name"):
        (found,) = resources_of(
            names["topic"],
            names["group"],
            kind == "cluster",
            names["transactional-id"],
            names["delegation-token"],
            names["user"],
        )
    return found


def entry_words(entry: AclEntry) -> dict[str, str]:
    """The fields of an entry as words of an address or a form."""
    return {name: str(int(value) if name in _NUMBERS else value) for name, value in entry._asdict().items()}


def entry_of(words: Mapping[str, str]) -> AclEntry:
    """The entry of such words. Raises WrongInput if they are none."""
    try:
        return AclEntry(
            int(words["resource_type"]),
            words["resource_name"],
            int(words["pattern_type"]),
            words["principal"],
            words["host"],
            int(words["operation"]),
            int(words["permission"]),
        )
    except (KeyError, ValueError):
        raise WrongInput("the address names no rule", "choose one in the list") from None
