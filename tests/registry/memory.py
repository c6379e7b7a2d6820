"""The REST API over a list of records: a store in memory, and a client that calls the application directly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from ottla.registry.app import build
from ottla.registry.port import About, NotLeader
from ottla.schemas.registry.commands import RegistryCommand
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.records import RegistryRecord

T = TypeVar("T")
V1 = "application/vnd.schemaregistry.v1+json"


class MemoryStore:
    """Applies what the machine decides, and keeps the records. A `leader` elsewhere makes it a follower."""

    def __init__(self) -> None:
        self.machine = RegistryMachine()
        self.records: list[RegistryRecord] = []
        self.now_ms = 1_700_000_000_000
        self.leader: MemoryStore | None = None
        self.fails: Exception | None = None
        self.forwarded: list[Request] = []

    @property
    def state(self) -> RegistryMachine:
        return self.machine

    async def in_thread(self, work: Callable[[RegistryMachine], T]) -> T:
        return work(self.machine)

    @property
    def about(self) -> About:
        return About("cluster-1", "schema-registry", "1.2.3", "abcdef")

    async def submit(self, command: RegistryCommand) -> Any:
        if self.fails is not None:
            raise self.fails
        if self.leader is not None:
            raise NotLeader("http://leader:8081")
        result = self.machine.decide(command, self.now_ms)
        for record in result.records:
            self.machine.apply(record)
            self.records.append(record)
        return result.reply

    async def forward(self, request: Request) -> Response:
        self.forwarded.append(request)
        assert self.leader is not None
        target = request.scope["raw_path"].decode() + "?" + request.scope["query_string"].decode()
        answer = await ask_app(build(self.leader), request.method, target, await request.body(), {"X-Forward": "true"})
        return Response(answer.body, answer.status, media_type=answer.headers.get("content-type"))


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask_app(app: Any, method: str, target: str, body: bytes, headers: dict[str, str]) -> Answer:
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 8081),
        "client": ("127.0.0.1", 1),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    begun = sent[0]
    got = {name.decode(): value.decode() for name, value in begun["headers"]}
    return Answer(begun["status"], got, b"".join(message.get("body", b"") for message in sent[1:]))


class Registry:
    """A registry to talk to."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self._app = build(self.store)

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return asyncio.run(ask_app(self._app, method, target, data, {"Content-Type": V1, **named}))

    def get(self, target: str) -> Any:
        return self._good(self.ask("GET", target))

    def post(self, target: str, body: Any) -> Any:
        return self._good(self.ask("POST", target, body))

    def put(self, target: str, body: Any) -> Any:
        return self._good(self.ask("PUT", target, body))

    def delete(self, target: str) -> Any:
        return self._good(self.ask("DELETE", target))

    def refused(self, method: str, target: str, body: Any = None) -> tuple[int, str]:
        """The code and the sentence of a refusal."""
        answer = self.ask(method, target, body)
        code = answer.json["error_code"]
        assert answer.status == (code if code < 1_000 else code // 100), answer
        return code, answer.json["message"]

    def register(self, subject: str, schema: str, **more: Any) -> int:
        """Register; the id."""
        return int(self.post(f"/subjects/{subject}/versions", {"schema": schema, **more})["id"])

    @staticmethod
    def _good(answer: Answer) -> Any:
        assert answer.status == 200, answer
        return answer.json
