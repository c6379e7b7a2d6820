"""The sinks of the audit log, as the settings choose them: a file of bounded size, and the topic `__ottla_audit`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.names import AUDIT_TOPIC
from ottla.model.settings.own import OTTLA_AUDIT_EVENTS, OTTLA_AUDIT_FILE, OTTLA_AUDIT_TO
from ottla.security.audit_event import AuditKind
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.security.audit.log import AuditLog
from ottla.server.security.audit.writer import AuditSink, AuditWriter, NotWritable
from ottla.server.security.peer_security import towards_brokers
from ottla.server.settings.configs import Configs

if TYPE_CHECKING:
    from ottla.client.producer.producer import Producer
    from ottla.client.security.security import Security


def audit_log(configs: Configs, runtime: Runtime) -> AuditLog | None:
    """Return the audit log of a node; None if it is off."""
    settings = configs.broker
    if not settings[OTTLA_AUDIT_TO]:
        return None
    return AuditLog([AuditKind(name) for name in settings[OTTLA_AUDIT_EVENTS]], runtime.now_ms)


def audit_writer(
    audit: AuditLog,
    configs: Configs,
    runtime: Runtime,
    bootstrap: Callable[[], str],
    create_topic: Callable[[str], Later[ApiError | None]],
) -> AuditWriter:
    """Return what writes the lines of the audit log where the settings say.

    `bootstrap` returns the addresses of brokers for brokers, as far as they are known now.
    """
    to, sinks = configs.broker[OTTLA_AUDIT_TO], list[AuditSink]()
    if "file" in to:
        sinks.append(AuditFile(configs.broker[OTTLA_AUDIT_FILE] or "", runtime.in_worker))
    if "topic" in to:
        sinks.append(AuditTopic(bootstrap, lambda: towards_brokers(configs.node), create_topic))
    return AuditWriter(audit, sinks)


Append: TypeAlias = Callable[[Sequence[str]], None]
InWorker: TypeAlias = Callable[[Append, Sequence[str]], Awaitable[None]]


class AuditFile:
    """Lines are appended by a worker. A file that would become too large is kept as `<path>.1`, and so on."""

    def __init__(self, path: str, in_worker: InWorker) -> None:
        self.name = f"the file {path}"
        self._path = path
        self._in_worker = in_worker
        self._is_torn = False  # whether the last line may be incomplete, because the disk was full

    async def write(self, lines: Sequence[str]) -> None:
        await self._in_worker(self._append, lines)

    async def close(self) -> None:
        """Nothing is open between two writes."""

    def _append(self, lines: Sequence[str]) -> None:
        size = os.stat(self._path).st_size if os.path.exists(self._path) else 0
        some: list[bytes] = []
        for line in lines:
            data = f"{line}\n".encode()
            if size and size + len(data) > limits.AUDIT_FILE_BYTES_MAX:
                self._write(b"".join(some))
                self._set_aside()
                size, some = 0, []
            some.append(data)
            size += len(data)
        self._write(b"".join(some))

    def _write(self, data: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size and self._is_torn:
                data = b"\n" + data
            self._is_torn = True  # until all of it is written
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            self._is_torn = False
        finally:
            os.close(descriptor)

    def _set_aside(self) -> None:
        for number in range(limits.AUDIT_FILES_KEPT - 1, 0, -1):
            if os.path.exists(f"{self._path}.{number}"):
                os.replace(f"{self._path}.{number}", f"{self._path}.{number + 1}")
        os.replace(self._path, f"{self._path}.1")


class AuditTopic:
    """Lines become records, by way of the inter-broker listener, as this node, which need not be a broker itself."""

    def __init__(
        self,
        bootstrap: Callable[[], str],
        security: Callable[[], Security | None],
        create_topic: Callable[[str], Later[ApiError | None]],
    ) -> None:
        self.name = f"the topic {AUDIT_TOPIC}"
        self._bootstrap = bootstrap
        self._security = security
        self._create_topic = create_topic
        self._producer: Producer | None = None

    async def write(self, lines: Sequence[str]) -> None:
        if self._producer is None:
            await self._write_first(lines)
            return
        async with asyncio.timeout(limits.AUDIT_WRITE_S):
            await _send(self._producer, lines)

    async def _write_first(self, lines: Sequence[str]) -> None:
        """Write lines, and keep the producer if it can. Raises NotWritable."""
        from ottla.client.producer.producer import Producer

        bootstrap = self._bootstrap()
        if not bootstrap:
            raise NotWritable("no broker is registered with the inter-broker listener that this node's settings name")
        refused: ApiError | None = None
        producer: Producer | None = None
        try:
            async with asyncio.timeout(limits.AUDIT_WRITE_S):
                # This node may be refused, and another one have created the topic.
                refused = await self._create_topic(AUDIT_TOPIC)
                producer = Producer(bootstrap, security=self._security())
                await _send(producer, lines)
            self._producer, producer = producer, None
        except Exception as error:
            if refused is not None:
                raise NotWritable(f"the topic {AUDIT_TOPIC} cannot be created: {refused}") from error
            raise NotWritable(str(error) or f"the brokers at {bootstrap} take no records in time") from error
        finally:
            if producer is not None:
                await producer.close(discard=True)

    async def close(self) -> None:
        if self._producer is not None:
            producer, self._producer = self._producer, None
            await producer.close(discard=True)


async def _send(producer: Producer, lines: Sequence[str]) -> None:
    for line in lines:
        await producer.post(AUDIT_TOPIC, line.encode())
    await producer.flush()
