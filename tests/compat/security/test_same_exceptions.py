"""Java's producer, consumer and admin client without and with rights see the same on Ottla and on a real Kafka."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from tests.compat.security.secure_node import SecureNode
from tests.support.clients.assigned import Java
from tests.support.clients.members import JavaGroups, Joining, until
from tests.support.java.programs import JavaServer
from tests.support.lines import HarnessError

HERS, HIDDEN = "alice-same", "hidden"


@pytest.fixture(scope="module")
def nodes(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SecureNode]]:
    """A real Kafka and Ottla, with the same users, ACLs and topics."""
    started = [SecureNode(kind, tmp_path_factory.mktemp(kind)) for kind in ("kafka", "ottla")]
    try:
        for each in started:
            each.start()
            each.create(HERS)
            each.create(HIDDEN)
        yield started
    finally:
        for each in started:
            each.stop()


def outcome(work: Callable[[], Any]) -> Any:
    """What a call returns, or the name of the exception that it raises."""
    try:
        return work()
    except HarnessError as error:
        return error.name


def seen_by(java: Java, groups: JavaGroups, node: SecureNode, user: str) -> list[Any]:
    """What a user of this node sees, step by step."""
    bootstrap = node.at("SASL_SSL")
    security = node.security("SASL_SSL", "PLAIN", user).java()

    def admin(verb: str, **arguments: Any) -> Any:
        return outcome(lambda: java.ask(verb, bootstrap, client=security, **arguments))

    def written(topic: str) -> Any:
        config = security | {"enable.idempotence": "false", "max.block.ms": "20000"}
        records = [{"value": "eA==", "partition": 0}]
        answers = java.ask("produce", bootstrap, topic=topic, records=records, config=config)
        return [each.get("error", "written") for each in answers]

    def joined(group: str, topic: str) -> Any:
        member = groups.join(bootstrap, Joining(group, [topic], "range"))
        try:
            state = until(lambda: (now := member.state()) and (now.records or now.failed) and now, str)
            return state.failed or "read"
        finally:
            outcome(member.leave)

    def transaction(identity: str) -> Any:
        producer = groups.transactional(bootstrap, identity)
        producer.close()
        return "opened"

    topics = (HERS, HIDDEN, "missing", "alice-new") if user == "alice" else (HERS, HIDDEN)
    made = admin("create_topic", topic=f"{HIDDEN}-{user}", partitions=1, configs={})
    return [
        *[("write", topic, outcome(partial(written, topic))) for topic in topics],
        *[("read", *each, outcome(partial(joined, *each))) for each in ((HERS, HERS), (HERS, HIDDEN), (HIDDEN, HERS))],
        *[("transaction", each, outcome(partial(transaction, each))) for each in (HERS, HIDDEN)],
        ("create", made if isinstance(made, str) else "made"),
        ("delete", admin("delete_topic", topic=f"{HIDDEN}-{user}")),
        ("list", [name for name in admin("list_topics") if name in (HERS, HIDDEN)]),
        ("acls", admin("describe_acls", filter=[None] * 7)),
    ]


@pytest.mark.parametrize("user", ["alice", "admin"])
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_the_same_exceptions(version: str, user: str, nodes: list[SecureNode], request: pytest.FixtureRequest) -> None:
    clients: JavaServer = request.getfixturevalue(f"java_clients_{version.replace('.', '')}")
    java, seen = Java(clients, version), []
    for node in nodes:
        groups = JavaGroups(clients, version, node.security("SASL_SSL", "PLAIN", user))
        seen.append(seen_by(java, groups, node, user))
    kafka, ottla = seen
    assert ottla == kafka
    refused = [step for step in kafka if "AuthorizationException" in str(step)]
    assert bool(refused) == (user == "alice"), kafka
