"""A request as handlers see it: its path, with contexts and aliases resolved; its parameters; its body as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ottla.model.limits import INT32_MAX, JSON_BODY_PARTS_MAX, REGISTRY_BODY_AT_ONCE_BYTES, REGISTRY_LEADERS_MAX
from ottla.registry.errors import BadRequest
from ottla.registry.port import ForwardFailed, LeadsNow, NotLeader, RegistryStorePort
from ottla.registry.security.forward_seal import FORWARD_HEADER
from ottla.registry.security.subject_rights import EVERYTHING, SubjectRights
from ottla.schemas.registry.commands import RegistryCommand
from ottla.schemas.registry.entities import SchemaDraft
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.names import beside
from ottla.schemas.registry.refusal import invalid_version
from ottla.web.answers import encode_json

T = TypeVar("T")
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")


class ForwardedAnswer(Exception):
    """The leader has answered the request."""

    def __init__(self, response: Response) -> None:
        super().__init__("answered by the leader")
        self.response = response


class EncodedAnswer(NamedTuple):
    """An answer that is encoded as JSON already."""

    body: bytes

    @classmethod
    def rows(cls, rows: Iterable[Any]) -> EncodedAnswer:
        """Encode rows one by one, so that other threads get a turn when this runs in a thread."""
        return cls(b"[" + b",".join(map(encode_json, rows)) + b"]")


class PlainText(NamedTuple):
    """The text of a schema as the whole answer: itself, not as a JSON string."""

    text: str


@dataclass(eq=False, slots=True)
class Call:
    """One request. `params` are the named segments of its path, `query` its parameters (each with all its values).
    `rights` are those of its client: handlers leave out subjects that it may not see.
    """

    request: Request
    store: RegistryStorePort
    params: dict[str, str]
    query: dict[str, list[str]] = field(default_factory=dict)
    rights: SubjectRights = EVERYTHING

    @property
    def machine(self) -> RegistryMachine:
        return self.store.state

    async def submit(self, command: RegistryCommand) -> Any:
        """Have the leader run a command: this instance, or another one. A request that was forwarded is not forwarded
        again.
        """
        for _ in range(REGISTRY_LEADERS_MAX):
            try:
                return await self.store.submit(command)
            except NotLeader:
                if FORWARD_HEADER in self.request.headers:
                    raise
            try:
                answer = await self.store.forward(self.request)
            except LeadsNow:
                continue
            raise ForwardedAnswer(answer)
        raise ForwardFailed(f"the leader changed {REGISTRY_LEADERS_MAX} times meanwhile")

    def check_references(self, subject: str, draft: SchemaDraft) -> None:
        """Raise Forbidden if a schema refers to a subject that the client may not see."""
        for reference in draft.references:
            self.rights.check_seen(beside(subject, reference.subject))

    async def in_thread(self, work: Callable[[RegistryMachine], T]) -> T:
        """Run work in a thread that parses or compares schemas, or iterates over all of them."""
        return await self.store.in_thread(work)

    async def show(self, make: Callable[[], T]) -> T:
        """Make an answer about schemas; in a thread if `format` or `findTags` require parsing them."""
        if self.query.get("format") or self.query.get("findTags"):
            return await self.in_thread(lambda _: make())
        return make()

    async def body(self) -> dict[str, Any]:
        """Return the JSON object in the body. Raises BadRequest."""
        sent = await self.request.body()
        if not sent.strip():
            raise BadRequest(422, "The request body must not be null")
        if sum(map(sent.count, (b",", b":", b"[", b"{"))) > JSON_BODY_PARTS_MAX:
            raise BadRequest(422, f"The request body has more than {JSON_BODY_PARTS_MAX} commas, colons and brackets")
        try:
            if len(sent) < REGISTRY_BODY_AT_ONCE_BYTES:
                value = json.loads(sent)
            else:
                value = await self.in_thread(lambda _: json.loads(sent))
        except (ValueError, RecursionError) as error:
            raise BadRequest(400, f"The request body is not JSON: {error}") from None
        if value is None:
            raise BadRequest(422, "The request body must not be null")
        if not isinstance(value, dict):
            raise BadRequest(400, "The request body is not a JSON object")
        return value

    def text(self, name: str) -> str | None:
        """Return a parameter; None if it was not given."""
        values = self.query.get(name)
        return values[0] if values else None

    def flag(self, name: str) -> bool:
        """Return whether a parameter is `true`, in any case of letters."""
        return (self.text(name) or "").lower() == "true"

    def number(self, name: str, default: int) -> int:
        given = self.text(name)
        return default if given is None or given == "" else number(given)

    def page(self, items: list[Any]) -> list[Any]:
        """Return the part that `offset` and `limit` select."""
        begin, limit = self.number("offset", 0), self.number("limit", -1)
        if begin < 0:
            raise BadRequest(400, "offset must not be negative")
        return items[begin : begin + limit] if limit > 0 else items[begin:]


def number(given: str) -> int:
    """Return a 32-bit number from a path; anything else raises the error for an unknown path."""
    text = given.strip()
    if _NUMBER.fullmatch(text) is None or abs(int(text)) > INT32_MAX:
        raise BadRequest(404, "HTTP 404 Not Found")
    return int(text)


def version_number(given: str) -> int:
    """Return a version from a path: a number, or `latest`, which is -1."""
    text = given.strip()
    if text.lower() == "latest":
        return -1
    try:
        version = number(text)
    except BadRequest:
        raise invalid_version(given) from None
    if version <= 0 and version != -1:
        raise invalid_version(text)
    return version
