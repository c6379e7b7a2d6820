"""Our controller and Kafka's own, asked the same on the same state: the same records, the same answers.

Kafka's ReplicationControlManager and ClusterControlManager run in a JVM (tests/java/controller).
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import random
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, TypeAlias

from tests.cluster.bench import Cluster
from tests.support.java.programs import JavaServer
from tests.support.lines import HarnessError

from ottla.cluster.entities import PartitionState
from ottla.cluster.entry import MetadataEntry, decode, encode
from ottla.cluster.machine import ClusterCommand
from ottla.cluster.snapshot import snapshot
from ottla.machine.kit import Result
from ottla.model.errors import ApiError
from ottla.model.settings.node import NUM_PARTITIONS
from ottla.security.principal import ANONYMOUS
from ottla.server.api import dispatch
from ottla.server.api.api_table import SERVED_TO_CONTROLLERS
from ottla.server.loop.later import Large, Later
from ottla.server.loop.slices import Slices
from ottla.wire import compile
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.message import Request, Response, Struct, fields
from ottla.wire.messages.topics.create_topics import CreateTopicsResponse

BROKERS = range(1, 6)


Partitions: TypeAlias = dict[tuple[bytes, int], PartitionState]


class Write:
    """A command that writes what it is told."""

    def __init__(self, *records: MetadataEntry) -> None:
        self.records = list(records)

    def decide(self, view: object, now_ms: int) -> Result[MetadataEntry, Any]:
        return Result(self.records)


class Both:
    """Our controller and Kafka's."""

    def __init__(self, kafka: JavaServer, rng: random.Random) -> None:
        self.kafka = kafka
        self.rng = rng
        self.ours = Cluster(brokers=0)
        self.incarnations = dict.fromkeys(BROKERS, 0)
        kafka.ask({"verb": "reset"})
        self._tell(self.ours.journal)

    def _tell(self, entries: list[MetadataEntry]) -> None:
        records = [text_of(encode(entry)) for entry in entries]
        self.kafka.ask({"verb": "apply", "records": records, "offset": len(self.ours.journal)})

    def write(self, *records: MetadataEntry) -> None:
        self._submit(Write(*records))

    def _submit(self, command: ClusterCommand) -> Any:
        before = len(self.ours.journal)
        try:
            return self.ours.submit(command)
        finally:
            written = self.ours.journal[before:]
            # The active controller applies its records as they are, everybody else what their version can hold.
            assert [entry._replace(value=None) for entry in written] == [decode(encode(entry)) for entry in written]
            self._tell(written)

    def begin_anew(self) -> None:
        """Kafka forgets everything and reads our snapshot."""
        self.kafka.ask({"verb": "reset"})
        self._tell(list(snapshot(self.ours.state)))

    def compare(self, command: ClusterCommand, verb: str, **asked: Any) -> tuple[dict[str, Any], Any]:
        """What a command writes is what Kafka would write; Kafka's answer and ours."""
        theirs = self._theirs(verb, asked)
        before, old = len(self.ours.journal), self._partitions()
        reply = self._submit(command)
        self._same(before, old, theirs["records"], (verb, asked))
        return theirs, reply

    def _theirs(self, verb: str, asked: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self.kafka.ask({"verb": verb, **asked})
        answer["records"] = [decode(base64.b64decode(each)) for each in answer["records"]]
        return answer

    def _same(self, before: int, old: Partitions, theirs: list[MetadataEntry], what: object) -> None:
        ours = [decode(encode(entry)) for entry in self.ours.journal[before:]]
        mine, kafkas = Counter(_forms(ours, old)), Counter(_forms(theirs, old))
        assert mine == kafkas, f"{what}\nonly ours: {[*(mine - kafkas)]}\nonly Kafka's: {[*(kafkas - mine)]}"

    def _partitions(self) -> Partitions:
        return {(topic.id, each.index): each for topic in self.ours.state.topics.values() for each in topic.partitions}

    def same(self, verb: str, request: Request, response: type[Response] | None = None) -> Any:
        """What a request leads to is what it would lead to at Kafka: records and (where it is told) answer."""
        version = SERVED_TO_CONTROLLERS[type(request).key][1]
        body = compile.encode(request, version)
        try:
            theirs = self._theirs(verb, {"body": text_of(body), "version": version})
        except HarnessError as error:
            theirs = {"records": [], "refused": error}
        before, old = len(self.ours.journal), self._partitions()
        route = dispatch.CONTROLLER_ROUTES.find(type(request).key, version)
        assert route is not None
        asked = compile.decode(type(request), version, body)
        context: Any = SimpleNamespace(
            member=SimpleNamespace(
                controller=self,
                metadata=SimpleNamespace(state=self.ours.state),
                state=self.ours.state,
                decided_state=self.ours.state,
            ),
            request_version=version,
            cluster_id="cluster",
            configs=SimpleNamespace(node=self.ours.config(), broker={NUM_PARTITIONS: 1}),
            quotas=SimpleNamespace(mutating=lambda context, strict: None),
            settings=self.ours.config().broker,
            principal=ANONYMOUS,
        )
        answer: Any = asyncio.run(_carried_out(route, asked, context))
        self._same(before, old, theirs["records"], request)
        if "refused" in theirs:
            assert answer.error_code, (request, theirs)
        elif response is not None:
            told = compile.decode(response, version, base64.b64decode(theirs["response"]))
            assert _plain(answer) == _plain(told), request

    def submit(self, command: ClusterCommand) -> Later[Any]:
        """As handlers see a controller."""
        later: Later[Any] = Later()
        try:
            later.set(self._submit(command))
        except ApiError as error:
            later.set(error)
        return later

    def ask(self, command: ClusterCommand, respond: Callable[[Any], Any]) -> Any:
        """The same, with the answer made of the reply, or the error."""
        try:
            reply = self._submit(command)
        except ApiError as error:
            return error
        return respond(reply)


async def _carried_out(route: dispatch.Route, request: Request, context: Any) -> Any:
    """The answer of a handler, also of one that makes it in slices."""
    context.runtime = SimpleNamespace(slices=Slices(asyncio.get_running_loop()))
    answer: Any = route.handler(request, context)
    if inspect.isawaitable(answer):
        answer = await answer
    return answer.response if isinstance(answer, Large) else answer


def _creates(entries: list[MetadataEntry]) -> bool:
    return any(isinstance(entry.record, journal.TopicRecord) for entry in entries)


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _forms(entries: list[MetadataEntry], old: Partitions) -> Iterator[str]:
    """What records lead to, in a form that can be compared and read."""
    partitions: Partitions = {}
    versions: dict[tuple[bytes, int], int] = {}
    for record, version, _ in entries:
        if isinstance(record, journal.PartitionChangeRecord):
            key = (record.topic_id, record.partition_id)
            state = partitions.get(key, old[key]).changed(record)
            # Kafka keeps whom it has taken out of the replicas among those eligible to lead.
            state = state._replace(elr=tuple(id for id in state.elr if id in state.replicas))
            # It needs two records where a replica is said to lie in a directory that has failed.
            partitions[key] = state._replace(partition_epoch=old[key].partition_epoch + 1)
            versions[key] = version
        elif not (isinstance(record, journal.ClearElrRecord) and _creates(entries)):  # a new topic has none to forget
            told = {field.name: getattr(record, field.name) for field in fields(type(record))}
            if isinstance(record, journal.TopicRecord | journal.PartitionRecord):
                del told["topic_id"]  # by chance
            if isinstance(record, journal.RegisterBrokerRecord):
                told["features"] = len(told["features"])
            yield f"{type(record).__name__} v{version}: {told}"
    for key, state in partitions.items():
        yield f"{state}, v{versions[key]}, was {old[key]}"


# Ids are random, and configurations are told only to who may see them.
_BY_CHANCE = (
    "error_message",
    "topic_id",
    "topic_config_error_code",
    "num_partitions",
    "replication_factor",
    "configs",
)


def _plain(value: Any) -> Any:
    """An answer but for texts: ours are our own."""
    if isinstance(value, Struct):
        left_out = _BY_CHANCE if isinstance(value, CreateTopicsResponse.CreatableTopicResult) else ("error_message",)
        names = [field.name for field in fields(type(value)) if field.name not in left_out]
        return {name: _plain(getattr(value, name)) for name in names}
    return sorted(map(_plain, value), key=str) if isinstance(value, list) else value
