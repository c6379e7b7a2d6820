"""A schema that is no version yet: checking it against those there are, and registering it."""

from __future__ import annotations

from ottla.client.registry import RegistryError, SchemaRegistry, request_of
from ottla.client.registry_calls import verdict_of, version_of, versions_of
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.schemas.compare import diff_block, lines_between
from ottla.console.pages.schemas.subject import subject_tabs, trail_of
from ottla.console.parts.forms import any_form, area, check_box, choice, field, form, hidden
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import card, notice, told
from ottla.console.refusals import WrongInput, typed_in
from ottla.console.routing import action, page
from ottla.operations.schema_text import parse_reference, pretty
from ottla.operations.threads import BlockingWork, in_thread
from ottla.schemas.schema import SchemaSource, SchemaType

_REFERENCES = "one in a line: NAME=SUBJECT:VERSION"
_REFUSED = (409, 422)  # not compatible; no schema


@page("/schemas/-/new")
async def new_page(call: PageCall) -> Page:
    return _new(call, TypedForm(call))


@action("/schemas/-/new")
async def register_new(call: PageCall) -> Answer:
    try:
        subject, source = call.text("subject"), _source(call)
        version = await in_thread(BlockingWork.registry, _register, call.registry, subject, source, _normalizes(call))
    except REFUSALS as error:
        return _new(call, TypedForm(call, _of_schema(error)))
    return Redirect(path_to("schemas", subject), done=f"Version {version} of {subject} is registered")


@page("/schemas/{subject}/register")
async def candidate_page(call: PageCall) -> Page:
    subject = call.params["subject"]
    versions = await in_thread(BlockingWork.registry, versions_of, call.registry, subject)
    if not versions:
        return _page(call, TypedForm(call))
    latest = await in_thread(BlockingWork.registry, version_of, call.registry, subject, versions[-1])
    kind = SchemaType(latest.kind) if latest.kind in list(SchemaType) else SchemaType.AVRO
    return _page(call, TypedForm(call), SchemaSource(pretty(latest.kind, latest.text), kind, latest.references))


@action("/schemas/{subject}/check", in_read_only=True)
async def check(call: PageCall) -> Answer:
    """Whether the schema could be the next version; it is not registered."""
    subject = call.params["subject"]
    try:
        found, lines = await in_thread(BlockingWork.registry, _check, call.registry, subject, _source(call))
    except REFUSALS as error:
        return _page(call, TypedForm(call, _of_schema(error)))
    if found:
        said: Content = notice("not compatible with what is registered", "bad")
        reasons = tag("ul", [tag("li", told(each)) for each in found])
    else:
        said, reasons = notice("compatible: this schema can be registered", "good"), tag("span")
    told_lines = card("Differences from the latest version", diff_block(lines)) if lines is None or lines else None
    buttons = (
        form(call, path_to("schemas", subject, "register"), *_kept(call), submit="Register") if not found else None
    )
    return _page(call, TypedForm(call), verdict=[said, reasons, buttons, told_lines])


@action("/schemas/{subject}/register")
async def register(call: PageCall) -> Answer:
    subject = call.params["subject"]
    try:
        source = _source(call)
        version = await in_thread(BlockingWork.registry, _register, call.registry, subject, source, _normalizes(call))
    except REFUSALS as error:
        return _page(call, TypedForm(call, _of_schema(error)))
    return Redirect(path_to("schemas", subject), done=f"Version {version} of {subject} is registered")


def _page(call: PageCall, typed: TypedForm, latest: SchemaSource | None = None, verdict: Content = None) -> Page:
    subject = call.params["subject"]
    entry = any_form(call, path_to("schemas", subject, "check"), *_fields(latest, typed), submit="Check it")
    hint = tag("p", "First it is checked by the subject's compatibility level; registering it is the next step.")
    content = [subject_tabs(call, subject), typed.said, verdict, card("Schema", hint, entry)]
    return Page("Check or register", content, trail_of(subject), typed.status)


def _new(call: PageCall, typed: TypedForm) -> Page:
    subject = field("subject", "Subject", hint="TOPIC-value or TOPIC-key", required=True, typed=typed)
    entry = form(call, path_to("schemas", "-", "new"), subject, *_fields(None, typed), submit="Register")
    return Page("Register a schema", [typed.said, card("Schema", entry)], trail_of(), typed.status)


def _of_schema(error: Exception) -> Exception:
    """What the registry says of the schema itself is wrong in its field."""
    if isinstance(error, RegistryError) and error.status in _REFUSED:
        return WrongInput(f"the registry refuses the schema: {error.message}", field="schema")
    return error


def _fields(latest: SchemaSource | None, typed: TypedForm) -> list[Content]:
    source = latest or SchemaSource("")
    references = "\n".join(f"{each.name}={each.subject}:{each.version}" for each in source.references)
    normalize = "Normalize, so that other spellings of it count as the same"
    return [
        choice("kind", "Type", [each.value for each in SchemaType], source.type.value, typed=typed),
        area("schema", "Schema", source.text, rows=16, required=True, typed=typed),
        area("references", "References", references, rows=2, hint=_REFERENCES, typed=typed),
        check_box("normalize", normalize, typed=typed),
    ]


def _kept(call: PageCall) -> list[Content]:
    """What was typed, for the next step."""
    names = ("kind", "schema", "references", "normalize")
    return [hidden(name, call.form[name]) for name in names if name in call.form]


def _source(call: PageCall) -> SchemaSource:
    kind = call.text("kind", SchemaType.AVRO.value)
    if kind not in list(SchemaType):
        raise WrongInput(f"the type is one of {', '.join(SchemaType)}", field="kind")
    with typed_in("references"):
        lines = call.text("references", "").splitlines()
        references = tuple(parse_reference(line.strip()) for line in lines if line.strip())
    return SchemaSource(call.text("schema"), SchemaType(kind), references)


def _normalizes(call: PageCall) -> bool:
    return "normalize" in call.form


def _check(registry: SchemaRegistry, subject: str, source: SchemaSource) -> tuple[list[str], list[str] | None]:
    found = verdict_of(registry, subject, source)
    versions = versions_of(registry, subject)
    if not versions:
        return found, []
    latest = version_of(registry, subject, versions[-1])
    old = (f"version {latest.version}", latest.kind, latest.text)
    return found, lines_between(old, ("this schema", source.type.value, source.text))


def _register(registry: SchemaRegistry, subject: str, source: SchemaSource, normalizes: bool) -> int:
    # Not `registry.register`, which keeps what it registered: the version may have been deleted since.
    registry.call("POST", "subjects", subject, "versions", body=request_of(source), normalize=normalizes)
    found = registry.call("POST", "subjects", subject, body=request_of(source), normalize=normalizes)
    return int(found["version"])
