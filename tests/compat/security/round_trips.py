"""Every client by its name in tests, and what each of them does: write a transaction, and read it in a group."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
from tests.support.clients import go, nodejs
from tests.support.clients.members import GroupClient, JavaGroups, Joining, LineClient, until
from tests.support.clients.python_members import AioGroups, ConfluentGroups, KafkaPythonGroups
from tests.support.clients.security import ClientSecurity
from tests.support.java.programs import JavaServer
from tests.support.runs.scoreboard import note_client

from ottla import Consumer, ConsumerOptions, Producer

OURS = "ottla"
# Columns of the table in docs/compatibility.md, § Security.
MUTUAL, PLAIN, SCRAM = "security: mutual TLS", "security: PLAIN", "security: SCRAM-SHA-256 and -512"
OAUTHBEARER, GSSAPI, TOKENS = "security: OAUTHBEARER", "security: GSSAPI", "security: delegation tokens"
TLS = "security: TLS"
CLIENTS: dict[str, Callable[[pytest.FixtureRequest, ClientSecurity], GroupClient]] = {
    "java-4.3.1": lambda request, how: JavaGroups(request.getfixturevalue("java_clients_431"), "4.3.1", how),
    "java-3.9.2": lambda request, how: JavaGroups(request.getfixturevalue("java_clients_392"), "3.9.2", how),
    "confluent-kafka": lambda _, how: ConfluentGroups(how),
    "aiokafka": lambda _, how: AioGroups(how),
    "kafka-python": lambda _, how: KafkaPythonGroups(how),
    "franz-go": lambda request, how: LineClient(
        request.getfixturevalue("franz_go"), "franz-go", go.VERSION, ("cooperative-sticky", "consumer"), how
    ),
    "kafkajs": lambda request, how: LineClient(
        request.getfixturevalue("kafkajs"), "kafkajs", nodejs.VERSION, ("roundrobin",), how
    ),
}
VALUES = [f"value {number}" for number in range(20)]


def client_of(name: str, request: pytest.FixtureRequest, how: ClientSecurity) -> GroupClient:
    """Return the client that a test is about; docs/compatibility.md shows the test's result in its row."""
    client = CLIENTS[name](request, how)
    note_client(request.node, client.name, client.version)
    return client


def round_trip(client: GroupClient, bootstrap: str, topic: str) -> None:
    """Write a transaction to an empty topic, and read it as a member of a group; all have the topic's name."""
    producer = client.transactional(bootstrap, topic)
    producer.begin()
    producer.send(topic, 0, VALUES)
    producer.commit()
    producer.close()
    member = client.join(bootstrap, Joining(topic, [topic], client.protocols[0], isolation="read_committed"))
    try:
        state = until(lambda: (now := member.state()) and (len(now.records) >= len(VALUES) or now.failed) and now, str)
        assert state.failed is None
        assert [each.value for each in state.records] == VALUES
        member.commit()
    finally:
        member.leave()


def our_round_trip(bootstrap: str, topic: str, security: Mapping[str, str]) -> None:
    """Write and read with our own client, without a transaction; the group has the topic's name."""

    async def run() -> list[bytes | None]:
        async with Producer(bootstrap, security=security) as producer:
            for value in VALUES:
                await producer.send(topic, value.encode())
        options = ConsumerOptions(group_id=topic, auto_offset_reset="earliest")
        got: list[bytes | None] = []
        async with Consumer(bootstrap, options, security=security) as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                got.append(record.value)
                if len(got) == len(VALUES):
                    break
        return got

    assert asyncio.run(run()) == [value.encode() for value in VALUES]


def set_system_properties(java: JavaServer, **properties: str) -> None:
    """Set properties of a JVM that runs already; underscores stand for dots."""
    java.ask({"verb": "system", "properties": {name.replace("_", "."): value for name, value in properties.items()}})
