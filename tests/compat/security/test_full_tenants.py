"""Real clients of a tenant that has all its connections: with the right password they wait, and work as soon as there
is room.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.compat.security.round_trips import CLIENTS, OURS, VALUES, client_of, our_round_trip
from tests.server.security.secured import log_in, plain_jaas
from tests.support.clients.security import ClientSecurity
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S, until

from ottla import Blocking
from ottla.model.tenancy.tenants import TenantLimits
from ottla.testing.broker import EmbeddedBroker

CONNECTIONS_MAX = 6  # enough for a client, whatever it opens
TOPIC = "acme.t"
# They give up if their first connection is refused, also if the broker closes it without a word.
GIVE_UP = ("aiokafka", "kafkajs")


@pytest.mark.parametrize("name", [OURS, *(name for name in CLIENTS if name not in GIVE_UP)])
def test_a_client_waits_for_room(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    users = {"admin": "a", "alice": "alice-secret", "acme.app": "b"}
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(users=users),
        "connection.failed.authentication.delay.ms": "100",
    }
    admin, own = (ClientSecurity("SASL_PLAINTEXT", "PLAIN", user, users[user]) for user in ("admin", "acme.app"))
    client = None if name == OURS else client_of(name, request, own)
    with EmbeddedBroker(tmp_path, settings) as broker, ExitStack() as holders, ThreadPoolExecutor(1) as pool:
        node = broker.node
        assert node is not None
        with Blocking(broker.bootstrap, security=admin.java()) as ours:
            ours.admin.topics.create(TOPIC)
            ours.admin.tenants.create("acme", TenantLimits(-1, -1, CONNECTIONS_MAX))
        for _ in range(CONNECTIONS_MAX):
            log_in(holders.enter_context(RawConnection(broker.bootstrap)), "acme.app", users)

        def work() -> None:
            if client is None:
                our_round_trip(broker.bootstrap, TOPIC, own.java())
                return
            producer = client.transactional(broker.bootstrap, "acme.id")
            producer.begin()
            producer.send(TOPIC, 0, VALUES)
            producer.commit()
            producer.close()

        working = pool.submit(work)
        logins = node.rooms.security.logins.counts[("SASL_PLAINTEXT", "PLAIN")]
        until(lambda: working.done() or logins.failures >= 3)
        holders.close()
        working.result(WAIT_S)
