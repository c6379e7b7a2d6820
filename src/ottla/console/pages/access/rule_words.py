"""Words of forms as access rules, and rules as the words of an address."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.console.call import PageCall
from ottla.console.html import Markup
from ottla.console.parts.forms import field
from ottla.console.refusals import WrongInput
from ottla.operations.access.asked import resources_of
from ottla.operations.access.entry_words import word
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation, AclResourceType

OPERATIONS = [word(each) for each in AclOperation if each >= AclOperation.ALL]
RESOURCES = ["topic", "group", "cluster", "transactional-id", "delegation-token", "user"]
_NUMBERS = ("resource_type", "pattern_type", "operation", "permission")


def principal_field(call: PageCall) -> Markup:
    """The field for a principal."""
    given = call.query.get("principal", "")
    return field("principal", "Principal", given, hint="a user: alice, or User:alice", required=True)


def resource_of(call: PageCall) -> tuple[AclResourceType, str]:
    """The resource that a form names. Raises ValueError for a wrong name."""
    kind = call.text("resource")
    if kind not in RESOURCES:
        raise ValueError(f"the resource is one of {', '.join(RESOURCES)}, not {kind[:40]!r}")
    names = {each: [call.form.get("name") or call.query.get("name", "")] if each == kind else [] for each in RESOURCES}
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
