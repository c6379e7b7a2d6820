"""The two nodes with an authorizer that tests of rights compare."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.clients.assigned import Java
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.limited import ADMIN, EVERY_TYPE, SECURED, Sides, grant, wait_for_coordinator
from tests.support.requests.one_of_each import GROUP, TOPIC, TRANSACTION

from ottla.security.acls import AclOperation


@pytest.fixture(scope="session")
def sides(java_431: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    directory = tmp_path_factory.mktemp("secured")
    kafka = RealKafka(directory / "kafka", properties=SECURED)
    ottla = OttlaNode(directory / "ottla", properties=kafka.properties)
    try:
        kafka.start()
        ottla.start()
        texts = java_431.ask("error_texts", kafka.bootstrap)
        sides = Sides(kafka.bootstrap, ottla.bootstrap, texts, (kafka.controller, ottla.controller))
        for admin in sides.admins.values():
            for resource, name in EVERY_TYPE:
                grant(admin, AclOperation.ALL, resource, name, ADMIN)
            admin.create(TOPIC)
            for kind, key in ((0, GROUP), (1, TRANSACTION)):
                wait_for_coordinator(admin, kind, key)
        for client in (sides.both.kafka, sides.both.ottla):
            client.ids = sides.admins[client.name].ids
        yield sides
        sides.close()
    finally:
        kafka.stop()
        ottla.stop()
