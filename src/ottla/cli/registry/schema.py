"""`ottla schema`: register, list, show, diff, check, delete."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ottla.cli.options import Json, Yes, not_empty
from ottla.cli.registry.calls import DEFAULT_URL, RegistryCalls, Url
from ottla.cli.registry.schema_text import (
    SchemaKind,
    parse_references,
    print_diff,
    print_schema,
    read_schema,
)
from ottla.cli.terminal import consent
from ottla.cli.terminal.visible import visible
from ottla.operations.schema_text import diff_lines

app = typer.Typer(help="Register, show, compare, check and delete schemas.", no_args_is_help=True)

_SUBJECT = typer.Argument(help="The subject; with -t or -k the topic.", callback=not_empty("subject"))
Subject = Annotated[str, _SUBJECT]
File = Annotated[str, typer.Argument(help="A file (.avsc, .json, .proto), or - for standard input.")]
Topic = Annotated[bool, typer.Option("--topic", "-t", help="SUBJECT is a topic, whose values have the schema.")]
Key = Annotated[bool, typer.Option("--key", "-k", help="SUBJECT is a topic, whose keys have the schema.")]
Type = Annotated[
    SchemaKind | None, typer.Option("--type", help="Type of the schema, if the file's extension does not tell.")
]
Refs = Annotated[
    list[str], typer.Option("--ref", help="A schema that it refers to, NAME=SUBJECT:VERSION; may be repeated.")
]
Normalize = Annotated[
    bool,
    typer.Option("--normalize", "-n", help="Normalize the schema, so that other spellings of it count as the same."),
]

LATEST = "latest"


@app.command()
def register(
    subject: Subject,
    file: File,
    topic: Topic = False,
    key: Key = False,
    kind: Type = None,
    refs: Refs = [],  # noqa: B006
    normalize: Normalize = False,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Register a schema as the next version of a subject; a schema that is registered already keeps its version."""
    from ottla.cli.terminal.output import done, print_json

    name, registry, body = _subject(subject, topic, key), RegistryCalls(url), _body(file, kind, refs)
    made = registry.post(body, "subjects", name, "versions", normalize=normalize)
    found = registry.post(body, "subjects", name, normalize=normalize)
    if as_json:
        print_json({"subject": name, "version": found["version"], "id": made["id"]})
    else:
        done(f"{name} version {found['version']} has id {made['id']}")


@app.command("list")
def list_schemas(
    prefix: Annotated[str, typer.Argument(help="Only subjects that begin with this.")] = "",
    deleted: Annotated[bool, typer.Option("--deleted", help="Also show subjects that are soft deleted.")] = False,
    all_versions: Annotated[bool, typer.Option("--all", "-a", help="Show every version, not only the latest.")] = False,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """List subjects with their latest version."""
    from ottla.cli.terminal.output import print_rows

    asked: dict[str, object] = {"subjectPrefix": prefix, "deleted": deleted, "latestOnly": not all_versions}
    rows = [
        {
            "subject": each["subject"],
            "version": each["version"],
            "id": each["id"],
            "type": each.get("schemaType", "AVRO"),
            "references": [f"{ref['subject']}:{ref['version']}" for ref in each.get("references") or ()],
        }
        for each in RegistryCalls(url).get("schemas", **asked)
    ]
    rows.sort(key=lambda row: (row["subject"], row["version"]))
    columns = ["subject", "version", "id", "type", "references"]
    print_rows(rows, columns, as_json=as_json, right=["version", "id"])


@app.command()
def show(
    subject: Annotated[str | None, _SUBJECT] = None,
    version: Annotated[str, typer.Argument(help="A version.")] = LATEST,
    schema_id: Annotated[int | None, typer.Option("--id", help="Id of the schema, instead of a subject.")] = None,
    topic: Topic = False,
    key: Key = False,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Show a schema: its text on standard output, its id, type and references on standard error."""
    from ottla.cli.terminal.output import note, print_json

    registry = RegistryCalls(url)
    if (subject is None) == (schema_id is None):
        raise typer.BadParameter("give a subject or --id")
    if schema_id is not None:
        found = {"id": schema_id, **registry.get("schemas", "ids", schema_id)}
        users = registry.get("schemas", "ids", schema_id, "versions")
        about = ", ".join(f"{each['subject']} version {each['version']}" for each in users) or "in no subject"
    else:
        name = _subject(subject or "", topic, key)
        found = registry.get("subjects", name, "versions", version)
        level = registry.get("config", name, defaultToGlobal=True)["compatibilityLevel"]
        about = f"{name} version {found['version']}, {level}"
    if as_json:
        print_json(found)
        return
    kind = found.get("schemaType", "AVRO")
    note(f"{kind} id {found['id']}: {about}")
    for each in found.get("references") or ():
        note(f"  {each['name']} is {each['subject']} version {each['version']}")
    print_schema(kind, found["schema"])


@app.command()
def diff(
    subject: Subject,
    old: Annotated[str | None, typer.Argument(help="A version, or a file to compare with the latest version.")] = None,
    new: Annotated[str, typer.Argument(help="A version or a file.")] = LATEST,
    topic: Topic = False,
    key: Key = False,
    kind: Type = None,
    refs: Refs = [],  # noqa: B006
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Show what changed between two versions (the last two unless given), and whether the new one is compatible."""
    from ottla.cli.terminal.output import print_json

    name, registry = _subject(subject, topic, key), RegistryCalls(url)
    if old is None:
        versions = registry.get("subjects", name, "versions")
        old = str(versions[-2:][0])
    elif not _is_version(old):
        old, new = LATEST, old
    before = registry.get("subjects", name, "versions", old)
    if _is_version(new):
        after = registry.get("subjects", name, "versions", new)
        label = f"version {after['version']}"
    else:
        after, label = _body(new, kind, refs), new
    lines = diff_lines(
        (f"{name} version {before['version']}", before.get("schemaType", "AVRO"), before["schema"]),
        (f"{name} {label}", after.get("schemaType", "AVRO"), after["schema"]),
    )
    body = {name: value for name, value in after.items() if name in ("schema", "schemaType", "references")}
    verdict = registry.post(body, "compatibility", "subjects", name, "versions", before["version"], verbose=True)
    if as_json:
        print_json({"diff": lines, **verdict})
        return
    print_diff(lines)
    _print_verdict(verdict, registry, name, f"version {before['version']}")


@app.command()
def check(
    subject: Subject,
    file: File,
    version: Annotated[str | None, typer.Option("--version", "-v", help="Check against this version only.")] = None,
    topic: Topic = False,
    key: Key = False,
    kind: Type = None,
    refs: Refs = [],  # noqa: B006
    normalize: Normalize = False,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Check a schema by the compatibility level of the subject. The exit code is 1 if it would be refused.

    A subject without versions accepts every schema: the exit code is 0, and the output says so (in JSON,
    `has_versions` is false).
    """
    from ottla.cli.terminal.output import note, print_json

    name, registry = _subject(subject, topic, key), RegistryCalls(url)
    place = ["compatibility", "subjects", name, "versions", *([] if version is None else [version])]
    verdict = registry.post(_body(file, kind, refs), *place, verbose=True, normalize=normalize)
    has_versions = version is not None or _has_versions(registry, name)
    if as_json:
        print_json({**verdict, "has_versions": has_versions})
    elif not has_versions:
        note(f"{name} has no versions yet: it would accept any valid schema, and this one is valid")
    else:
        _print_verdict(verdict, registry, name, "what is registered" if version is None else f"version {version}")
    if not verdict["is_compatible"]:
        raise typer.Exit(1)


@app.command()
def delete(
    subject: Subject,
    version: Annotated[str | None, typer.Argument(help="Only this version.")] = None,
    permanent: Annotated[bool, typer.Option("--permanent", help="Delete permanently: it cannot be restored.")] = False,
    yes: Yes = False,
    topic: Topic = False,
    key: Key = False,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Delete a subject or a version: softly (registering it again restores it), or permanently.

    With --permanent it asks before it deletes. Where standard input is not a terminal, --permanent requires --yes.
    """
    from ottla.cli.terminal.output import done, print_json
    from ottla.client.registry_calls import delete_versions

    name, registry = _subject(subject, topic, key), RegistryCalls(url)
    if permanent:
        of = f"all versions of {name}" if version is None else f"version {version} of {name}"
        consent.ask(f"Delete {of} permanently? Records written with them can then not be read.", yes=yes)
    versions = registry.ask(lambda client: delete_versions(client, name, version, permanent=permanent))
    if as_json:
        print_json({"subject": name, "versions": versions, "permanent": permanent})
        return
    how = " for good" if permanent else ""
    done(f"deleted {name} version{'s' if len(versions) > 1 else ''} {', '.join(str(each) for each in versions)}{how}")


def _subject(name: str, topic: bool, key: bool) -> str:
    if topic and key:
        raise typer.BadParameter("-t and -k exclude each other")
    return f"{name}-key" if key else f"{name}-value" if topic else name


def _body(file: str, kind: SchemaKind | None, refs: list[str]) -> dict[str, Any]:
    found, text = read_schema(file, kind)
    body: dict[str, Any] = {"schema": text, "schemaType": found}
    return {**body, "references": parse_references(refs)} if refs else body


def _has_versions(registry: RegistryCalls, subject: str) -> bool:
    from ottla.client.registry_calls import versions_of

    return bool(registry.ask(lambda client: versions_of(client, subject)))


def _is_version(text: str) -> bool:
    return text == LATEST or text.isdecimal()


def _print_verdict(verdict: dict[str, Any], registry: RegistryCalls, subject: str, against: str) -> None:
    from ottla.cli.terminal.output import err

    level = registry.get("config", subject, defaultToGlobal=True)["compatibilityLevel"]
    console = err()
    good = verdict["is_compatible"]
    console.print("[green]✓ compatible[/green]" if good else "[bold red]✗ incompatible[/bold red]", end="")
    console.print(f" with {against} ({level})", markup=False)
    for message in verdict.get("messages") or ():
        console.print(f"  {visible(message) if console.is_terminal else message}", markup=False)
