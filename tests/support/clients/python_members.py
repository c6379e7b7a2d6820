"""confluent-kafka, aiokafka and kafka-python as group members and transactional producers (see members).

Each consumer is a Handle: an interface of a few calls, for one thread. ThreadMember is that thread.
"""

import asyncio
import queue
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

import aiokafka
import aiokafka.errors
import confluent_kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from tests.support.clients.assigned import Aio, Confluent, KafkaPython
from tests.support.clients.members import WAIT_S, Joining, Received, State
from tests.support.clients.security import OPEN, ClientSecurity

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # importing it uses a deprecated function of Python
    import kafka
    import kafka.errors
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

T = TypeVar("T")
Offsets = dict[tuple[str, int], int]


class Handle(Protocol):
    def poll(self) -> list[Received]: ...
    def assignment(self) -> Iterable[Any]: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...


class ThreadMember:
    def __init__(self, opening: Callable[[], Handle]) -> None:
        self._wanted: queue.Queue[tuple[Callable[[Handle], Any], Future[Any]]] = queue.Queue()
        self._state = State([], [], 0, 0, 0, None)
        self._closing = False
        self._thread = threading.Thread(target=self._run, args=(opening,), daemon=True)
        self._thread.start()

    def state(self) -> State:
        return self._state

    def commit(self) -> None:
        self._do(lambda handle: handle.commit())

    def leave(self) -> None:
        self._closing = True
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    def _do(self, work: Callable[[Handle], T]) -> T:
        done: Future[T] = Future()
        self._wanted.put((work, done))
        return done.result(WAIT_S)

    def _run(self, opening: Callable[[], Handle]) -> None:
        handle = None
        try:
            handle = opening()
            while not self._closing:
                self._step(handle)
        except Exception as error:
            self._state = self._state._replace(failed=type(error).__name__)
        finally:
            if handle is not None:
                handle.close()

    def _step(self, handle: Handle) -> None:
        received = handle.poll()
        held = sorted((place.topic, place.partition) for place in handle.assignment())
        changed = self._state.assigned + (held != self._state.assignment)
        self._state = self._state._replace(
            records=self._state.records + received, assignment=held, assigned=changed
        )  # one store: other threads see the old state or the new one
        while not self._wanted.empty():
            work, done = self._wanted.get()
            try:
                done.set_result(work(handle))
            except Exception as error:
                done.set_exception(error)


class Producing(Protocol):
    """A transactional producer that also takes a consumer's offsets."""

    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, values: Sequence[str]) -> None: ...
    def offsets(self, handle: Any, offsets: Offsets) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


def copy_with(handle: Handle, producer: Producing, target: str, total: int) -> None:
    copied = 0
    deadline = time.monotonic() + WAIT_S
    while copied < total:
        assert time.monotonic() < deadline, f"{copied} of {total} copied"
        if not (records := handle.poll()):
            continue
        producer.begin()
        producer.send(target, 0, [f"copy of {each.value}" for each in records])
        producer.offsets(handle, {(each.topic, each.partition): each.offset + 1 for each in records})
        producer.commit()
        copied += len(records)
    producer.close()
    handle.close()


class ConfluentHandle:
    def __init__(self, bootstrap: str, how: Joining, security: ClientSecurity = OPEN) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": how.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": how.isolation,
            **security.librdkafka(),
        }
        if how.protocol == "consumer":
            settings["group.protocol"] = "consumer"
        else:
            settings |= {"partition.assignment.strategy": how.protocol, "heartbeat.interval.ms": 300}
            settings["session.timeout.ms"] = 10_000
        if how.instance is not None:
            settings["group.instance.id"] = how.instance
        self.consumer = confluent_kafka.Consumer(settings)
        self.consumer.subscribe([how.pattern] if how.pattern else list(how.topics))

    def poll(self) -> list[Received]:
        found = self.consumer.consume(100, 0.05)
        for each in found:
            if each.error() is not None:
                raise confluent_kafka.KafkaException(each.error())
        return [Received(each.topic(), each.partition(), each.offset(), each.value().decode()) for each in found]

    def assignment(self) -> Iterable[Any]:
        return self.consumer.assignment()

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)

    def close(self) -> None:
        self.consumer.close()


class ConfluentTransactional:
    def __init__(self, bootstrap: str, identity: str, security: ClientSecurity = OPEN) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": identity, **security.librdkafka()}
        )
        self._producer.init_transactions(WAIT_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, values: Sequence[str]) -> None:
        for value in values:
            self._producer.produce(topic, value.encode(), partition=partition)
        assert self._producer.flush(WAIT_S) == 0

    def offsets(self, handle: ConfluentHandle, offsets: Offsets) -> None:
        places = [confluent_kafka.TopicPartition(*place, offset) for place, offset in offsets.items()]
        self._producer.send_offsets_to_transaction(places, handle.consumer.consumer_group_metadata(), WAIT_S)

    def commit(self) -> None:
        self._producer.commit_transaction(WAIT_S)

    def abort(self) -> None:
        self._producer.abort_transaction(WAIT_S)

    def close(self) -> None:
        """Do nothing: librdkafka's producer ends when it is garbage-collected."""


class ConfluentGroups:
    protocols = ("range", "roundrobin", "cooperative-sticky", "consumer")
    fenced: type[Exception] = confluent_kafka.KafkaException

    def __init__(self, security: ClientSecurity = OPEN) -> None:
        self.name, self.version = Confluent.name, Confluent().version
        self._security = security

    def join(self, bootstrap: str, how: Joining) -> ThreadMember:
        return ThreadMember(lambda: ConfluentHandle(bootstrap, how, self._security))

    def transactional(self, bootstrap: str, identity: str) -> ConfluentTransactional:
        return ConfluentTransactional(bootstrap, identity, self._security)

    def copy(self, bootstrap: str, how: Joining, target: str, identity: str, total: int) -> None:
        producer = ConfluentTransactional(bootstrap, identity)
        copy_with(ConfluentHandle(bootstrap, how._replace(isolation="read_committed")), producer, target, total)


class _Loop:
    """An event loop that runs only during a call; aiokafka's own tasks make progress then."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, WAIT_S))

    def end(self) -> None:
        self._loop.close()


class AioHandle(_Loop):
    ASSIGNORS = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}

    def __init__(self, bootstrap: str, how: Joining, security: ClientSecurity = OPEN) -> None:
        super().__init__()
        self.group = how.group
        self.run(self._open(bootstrap, how, security))

    async def _open(self, bootstrap: str, how: Joining, security: ClientSecurity) -> None:
        self.consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=how.group,
            group_instance_id=how.instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=how.isolation,
            heartbeat_interval_ms=300,
            partition_assignment_strategy=(self.ASSIGNORS[how.protocol],),
            **security.aiokafka(),
        )
        await self.consumer.start()
        self.consumer.subscribe(topics=list(how.topics))

    def poll(self) -> list[Received]:
        return _received(self.run(self.consumer.getmany(timeout_ms=50)))

    def assignment(self) -> Iterable[Any]:
        found: Iterable[Any] = self.consumer.assignment()
        return found

    def commit(self) -> None:
        self.run(self.consumer.commit())

    def close(self) -> None:
        self.run(self.consumer.stop())
        self.end()


class AioTransactional(_Loop):
    def __init__(self, bootstrap: str, identity: str, security: ClientSecurity = OPEN) -> None:
        super().__init__()
        self.run(self._open(bootstrap, identity, security))

    async def _open(self, bootstrap: str, identity: str, security: ClientSecurity) -> None:
        self._producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=identity, **security.aiokafka()
        )
        await self._producer.start()

    def begin(self) -> None:
        self.run(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, values: Sequence[str]) -> None:
        async def sending() -> None:
            sent = [await self._producer.send(topic, value.encode(), partition=partition) for value in values]
            await asyncio.gather(*sent)

        self.run(sending())

    def offsets(self, handle: AioHandle, offsets: Offsets) -> None:
        places = {aiokafka.TopicPartition(*place): offset for place, offset in offsets.items()}
        self.run(self._producer.send_offsets_to_transaction(places, handle.group))

    def commit(self) -> None:
        self.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self.run(self._producer.abort_transaction())

    def close(self) -> None:
        self.run(self._producer.stop())
        self.end()


class AioGroups:
    protocols = ("range", "roundrobin", "sticky")
    fenced: type[Exception] = aiokafka.errors.KafkaError

    def __init__(self, security: ClientSecurity = OPEN) -> None:
        self.name, self.version = Aio.name, Aio().version
        self._security = security

    def join(self, bootstrap: str, how: Joining) -> ThreadMember:
        return ThreadMember(lambda: AioHandle(bootstrap, how, self._security))

    def transactional(self, bootstrap: str, identity: str) -> AioTransactional:
        return AioTransactional(bootstrap, identity, self._security)

    def copy(self, bootstrap: str, how: Joining, target: str, identity: str, total: int) -> None:
        producer = AioTransactional(bootstrap, identity)
        copy_with(AioHandle(bootstrap, how._replace(isolation="read_committed")), producer, target, total)


class KafkaPythonHandle:
    ASSIGNORS = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }

    def __init__(self, bootstrap: str, how: Joining, security: ClientSecurity = OPEN) -> None:
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=how.group,
            group_instance_id=how.instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=how.isolation,
            heartbeat_interval_ms=300,
            session_timeout_ms=10_000,
            partition_assignment_strategy=[self.ASSIGNORS[how.protocol]],
            **security.python(),
        )
        self.consumer.subscribe(topics=list(how.topics))

    def poll(self) -> list[Received]:
        # kafka-python forgets a join that is answered between two polls, so a poll must not stop waiting for one; and
        # unlike the others it raises if there is no broker.
        try:
            return _received(self.consumer.poll(timeout_ms=1000))
        except kafka.errors.KafkaConnectionError:
            return []

    def assignment(self) -> Iterable[Any]:
        found: Iterable[Any] = self.consumer.assignment()
        return found

    def commit(self) -> None:
        self.consumer.commit()

    def close(self) -> None:
        self.consumer.close()


class KafkaPythonTransactional:
    def __init__(self, bootstrap: str, identity: str, security: ClientSecurity = OPEN) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=identity, **security.python()
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, values: Sequence[str]) -> None:
        sent = [self._producer.send(topic, value=value.encode(), partition=partition) for value in values]
        for each in sent:
            each.get(WAIT_S)

    def offsets(self, handle: KafkaPythonHandle, offsets: Offsets) -> None:
        places = {
            kafka.TopicPartition(*place): kafka.OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()
        }
        self._producer.send_offsets_to_transaction(places, handle.consumer.group_metadata())

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(WAIT_S)


class KafkaPythonGroups:
    protocols = ("range", "roundrobin", "cooperative-sticky")
    fenced: type[Exception] = kafka.errors.KafkaError

    def __init__(self, security: ClientSecurity = OPEN) -> None:
        self.name, self.version = KafkaPython.name, KafkaPython().version
        self._security = security

    def join(self, bootstrap: str, how: Joining) -> ThreadMember:
        return ThreadMember(lambda: KafkaPythonHandle(bootstrap, how, self._security))

    def transactional(self, bootstrap: str, identity: str) -> KafkaPythonTransactional:
        return KafkaPythonTransactional(bootstrap, identity, self._security)

    def copy(self, bootstrap: str, how: Joining, target: str, identity: str, total: int) -> None:
        producer = KafkaPythonTransactional(bootstrap, identity)
        copy_with(KafkaPythonHandle(bootstrap, how._replace(isolation="read_committed")), producer, target, total)


def _received(batches: dict[Any, list[Any]]) -> list[Received]:
    """aiokafka's and kafka-python's records have the same attributes."""
    found = [each for batch in batches.values() for each in batch]
    return [Received(each.topic, each.partition, each.offset, each.value.decode()) for each in found]
