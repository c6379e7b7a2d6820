"""`ottla acl`: add, list and remove access control entries, and explain what they allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ottla.cli.acl.shown import print_entries
from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Yes, with_admin, wrong_values
from ottla.cli.terminal import consent
from ottla.cli.terminal.plain import print_warning
from ottla.operations.access.asked import (
    check_hosts,
    check_resources,
    filters_of,
    needed,
    operation_of,
    place_of,
    principal_of,
    resources_of,
)
from ottla.operations.access.effect import check_effect, effective_principal
from ottla.operations.access.entry_words import count_text, explained, explained_row, sentence

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.security.acl_entry import AclEntry, AclFilter

_REFUSED = 3  # exit status of `explain`; 1 is an error, 2 is wrong usage

app = typer.Typer(help="Who may do what: access control entries (ACLs).", no_args_is_help=True)

PrincipalArgument = Annotated[str, typer.Argument(help="Whose permissions: User:NAME, NAME, or User:* for everybody.")]
PrincipalOption = Annotated[
    str | None, typer.Option("--principal", help="Only entries of this principal: User:NAME, NAME, or User:*.")
]
Topics = Annotated[list[str], typer.Option("--topic", help="A topic, or * for all; may be repeated.")]
Groups = Annotated[list[str], typer.Option("--group", help="A group, or * for all; may be repeated.")]
ClusterOption = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
TransactionalIds = Annotated[
    list[str], typer.Option("--transactional-id", help="A transactional id, or * for all; may be repeated.")
]
Tokens = Annotated[list[str], typer.Option("--delegation-token", help="A delegation token; may be repeated.")]
Users = Annotated[
    list[str], typer.Option("--user-principal", help="A user whose delegation tokens are meant; may be repeated.")
]
Prefix = Annotated[bool, typer.Option("--prefix", help="Names are prefixes: all resources that begin with them.")]
Operations = Annotated[
    list[str], typer.Option("--operation", "-o", help="read, write, create, describe, all, ...; may be repeated.")
]
Hosts = Annotated[list[str], typer.Option("--host", help="Only from this address; may be repeated.")]


@app.command()
def add(
    principal: PrincipalArgument,
    topic: Topics = [],  # noqa: B006
    group: Groups = [],  # noqa: B006
    cluster: ClusterOption = False,
    transactional_id: TransactionalIds = [],  # noqa: B006
    delegation_token: Tokens = [],  # noqa: B006
    user_principal: Users = [],  # noqa: B006
    prefix: Prefix = False,
    operation: Operations = [],  # noqa: B006
    producer: Annotated[
        bool, typer.Option("--producer", help="What a producer needs on the topics and transactional ids.")
    ] = False,
    consumer: Annotated[
        bool, typer.Option("--consumer", help="What a consumer needs on the topics and groups.")
    ] = False,
    deny: Annotated[
        bool, typer.Option("--deny", help="Deny instead of allow; a denial outweighs permissions.")
    ] = False,
    host: Hosts = [],  # noqa: B006
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Allow (or deny) operations on resources to a principal.

    --producer and --consumer stand for the operations that a producer or a consumer needs.
    """
    from ottla.cli.terminal.each import end_with
    from ottla.cli.terminal.output import done
    from ottla.security.acl_entry import AclEntry
    from ottla.security.acls import AclPermission

    with wrong_values():
        resources = list(resources_of(topic, group, cluster, transactional_id, delegation_token, user_principal))
        check_resources(resources)
    with wrong_values("--host"):
        check_hosts(host)
    if (producer or consumer) and (operation or deny):
        raise typer.BadParameter("--producer and --consumer stand alone, without --operation and --deny")
    if not (operation or producer or consumer):
        raise typer.BadParameter("say what to allow: --operation, --producer or --consumer")
    permission = AclPermission.DENY if deny else AclPermission.ALLOW
    with wrong_values():
        operations = [operation_of(each) for each in operation]
        check_effect(resources, operations, prefix="--prefix" if prefix else None)
        who = effective_principal(principal)
        asked = [(each, resource) for resource in resources for each in operations]
        asked += needed(resources, producer=producer, consumer=consumer)
    entries = [
        AclEntry(*place_of(*resource, prefix=prefix), who, address, operation_meant, permission)
        for operation_meant, resource in dict.fromkeys(asked)
        for address in host or ["*"]
    ]
    made = with_admin(bootstrap, lambda admin: admin.acls.create_each(entries))
    if as_json:
        print_entries(list(made.found), as_json=True)
    else:
        for entry in made.found:
            done(sentence(entry))
    end_with(made, said=sentence)


@app.command("list")
def list_entries(
    principal: PrincipalOption = None,
    topic: Topics = [],  # noqa: B006
    group: Groups = [],  # noqa: B006
    cluster: ClusterOption = False,
    transactional_id: TransactionalIds = [],  # noqa: B006
    delegation_token: Tokens = [],  # noqa: B006
    user_principal: Users = [],  # noqa: B006
    prefix: Prefix = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List access control entries: all, or those that apply to the named resources.

    A resource is covered by entries for its name, for a prefix of its name and for *. --prefix lists the entries for
    exactly these prefixes.
    """
    from ottla.security.acl_entry import AclFilter
    from ottla.security.acls import PatternType

    with wrong_values():
        resources = list(resources_of(topic, group, cluster, transactional_id, delegation_token, user_principal))
        who = None if principal is None else principal_of(principal)
    pattern = PatternType.PREFIXED if prefix else PatternType.MATCH
    filters = [AclFilter(kind, name, pattern, who) for kind, name in resources]

    asked = filters or [AclFilter(principal=who)]
    print_entries(with_admin(bootstrap, lambda admin: _matching(admin, asked)), as_json=as_json)


@app.command()
def remove(
    principal: PrincipalOption = None,
    topic: Topics = [],  # noqa: B006
    group: Groups = [],  # noqa: B006
    cluster: ClusterOption = False,
    transactional_id: TransactionalIds = [],  # noqa: B006
    delegation_token: Tokens = [],  # noqa: B006
    user_principal: Users = [],  # noqa: B006
    prefix: Prefix = False,
    operation: Operations = [],  # noqa: B006
    host: Hosts = [],  # noqa: B006
    everything: Annotated[bool, typer.Option("--all", help="Remove all entries.")] = False,
    yes: Yes = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Remove the entries that match everything given: principal, resources (by their exact names), operations, hosts.

    Shows them and asks before it removes them; --yes removes them without asking, and is required where standard input
    is not a terminal. If no entry matches, the exit status is 1.
    """
    from ottla.cli.terminal.output import done, note

    with wrong_values():
        resources = list(resources_of(topic, group, cluster, transactional_id, delegation_token, user_principal))
    is_narrow = bool(principal or resources or operation or host)
    if is_narrow == everything:
        raise typer.BadParameter("say which entries: --principal, resources, --operation, --host; or --all")
    with wrong_values():
        filters = list(filters_of(principal, resources, prefix=prefix, operations=operation, hosts=host))

    if not yes:
        doomed = with_admin(bootstrap, lambda admin: _matching(admin, filters))
        if not doomed:
            _end_with_none(as_json=as_json)
        for entry in doomed:
            note(sentence(entry))
        consent.ask(f"Remove {count_text(len(doomed))}?", yes=False)
    removed = with_admin(bootstrap, lambda admin: admin.acls.delete(filters))
    if not removed:
        _end_with_none(as_json=as_json)
    if as_json:
        print_entries(removed, as_json=True)
    else:
        done(f"removed {count_text(len(removed))}")


@app.command()
def explain(
    principal: PrincipalArgument,
    operation: Annotated[str, typer.Argument(help="The operation: read, write, create, describe, ...")],
    topic: Topics = [],  # noqa: B006
    group: Groups = [],  # noqa: B006
    cluster: ClusterOption = False,
    transactional_id: TransactionalIds = [],  # noqa: B006
    delegation_token: Tokens = [],  # noqa: B006
    user_principal: Users = [],  # noqa: B006
    host: Annotated[str, typer.Option("--host", help="The address that the client connects from.")] = "127.0.0.1",
    super_user: Annotated[
        list[str], typer.Option("--super-user", help="A super user of the brokers (super.users); may be repeated.")
    ] = [],  # noqa: B006
    open_cluster: Annotated[
        bool, typer.Option("--open", help="The brokers have allow.everyone.if.no.acl.found=true.")
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Say whether a principal may do something, and which entry decides.

    The exit status is 0 if it is allowed (on all resources), 3 if it is refused, and 1 if there is no answer.

    The answer is worked out here, from the entries of the cluster. Brokers that have the settings super.users and
    allow.everyone.if.no.acl.found hide their values: then a note says so, and --super-user and --open give them.
    """
    from ottla.cli.terminal.output import print_json, print_text
    from ottla.operations.access.super_users import unseen_settings
    from ottla.security.access_rules import AccessRules
    from ottla.security.acl_entry import AclFilter
    from ottla.security.acls import PatternType
    from ottla.security.principal import parse_principal

    with wrong_values():
        resources = list(resources_of(topic, group, cluster, transactional_id, delegation_token, user_principal))
        check_resources(resources)
    with wrong_values("--host"):
        check_hosts([host])
    with wrong_values():
        who, meant = effective_principal(principal), operation_of(operation)
        check_effect(resources, [meant])
        rules = AccessRules(map(principal_of, super_user), allow_everyone_if_no_acl_found=open_cluster)

    async def work(admin: Admin) -> tuple[dict[str, str], list[AclEntry]]:
        entries = await _matching(admin, [AclFilter(*each, PatternType.MATCH) for each in resources])
        return await unseen_settings(admin), entries

    unseen, entries = with_admin(bootstrap, work)
    for number, entry in enumerate(entries):
        rules.add(entry.as_record(number.to_bytes(16, "big")))
    client = who, host, meant
    found = [(each, rules.explain(parse_principal(who), host, meant, *each)) for each in resources]
    given = {"--super-user": bool(super_user), "--open": open_cluster}
    if as_json:
        print_json([explained_row(client, resource, why) for resource, why in found])
    else:
        for resource, why in found:
            print_text(explained(client, resource, why))
    if not all(why.allowed for _, why in found):
        _end_refused(option for option in unseen.items() if not given[option[1]])


async def _matching(admin: Admin, filters: Sequence[AclFilter]) -> list[AclEntry]:
    """Return the entries that match one of the filters, in order."""
    found = [await admin.acls.describe(each) for each in filters]
    return sorted({entry for entries in found for entry in entries})


def _end_refused(unseen: Iterable[tuple[str, str]]) -> NoReturn:
    """Name the settings that may allow more, each with the option that gives it."""
    from ottla.cli.terminal.output import note

    for name, option in unseen:
        note(f"{name} cannot be seen, and may allow more: {option} gives it")
    raise typer.Exit(_REFUSED)


def _end_with_none(*, as_json: bool) -> NoReturn:
    if as_json:
        print_entries([], as_json=True)
    print_warning("no entry matches: nothing was removed")
    raise typer.Exit(1)
