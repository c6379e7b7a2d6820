"""A user of one tenant tries every route of the registry on the subjects of another: it sees and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.registry.security.web import Answer, ask, basic
from tests.server.security.secured import MODULES
from tests.server.tenants.conftest import PASSWORDS, Neighbours
from tests.support.waiting import until

from ottla.registry.routes import table
from ottla.testing.registry import Registry

SUBJECT = "globex.orders-value"
SCHEMA = json.dumps({"type": "record", "name": "GlobexSecret", "fields": []})
SENT: dict[str, Any] = {
    "config": {"compatibility": "NONE"},
    "mode": {"mode": "READONLY"},
    "subjects": {"schema": SCHEMA},
    "compatibility": {"schema": SCHEMA},
}
table.load()
ROUTES = [(method, path) for path, methods in table._TABLE.items() for method in methods]
IDS = [f"{method} /{'/'.join(path)}" for method, path in ROUTES]
# The settings of all subjects, and a context as a whole, need a right on the cluster.
OF_ALL = {("PUT", "config"), ("DELETE", "config"), ("PUT", "mode"), ("DELETE", "mode"), ("DELETE", "contexts")}


class Shop(NamedTuple):
    """A registry with a subject of the neighbour."""

    url: str
    values: dict[str, str]

    def ask(self, user: str, method: str, path: tuple[str, ...]) -> Answer:
        place = "/" + "/".join(self.values.get(each, each) for each in path)
        body = SENT.get(path[0] if path else "") if method in ("POST", "PUT") else None
        return ask(self.url, method, place, basic(user, PASSWORDS[user]), body=body)

    def dump(self) -> list[Any]:
        """Every schema, and all settings of the neighbour's subject and of all subjects."""
        paths = [f"/{kind}{subject}" for kind in ("config", "mode") for subject in ("", f"/{SUBJECT}")]
        answers = [self.ask("admin", "GET", (path[1:],)) for path in (*paths, "/schemas?deleted=true", "/contexts")]
        return [(each.status, each.content) for each in answers]


@pytest.fixture(scope="module")
def shop(neighbours: Neighbours) -> Iterator[Shop]:
    module = f"{MODULES}.plain.PlainLoginModule"
    settings = {
        "kafkastore.security.protocol": "SASL_PLAINTEXT",
        "kafkastore.sasl.mechanism": "PLAIN",
        "kafkastore.sasl.jaas.config": f'{module} required username="admin" password="{PASSWORDS["admin"]}";',
        "authentication.method": "BASIC",
        "super.users": "User:admin",
    }
    registry = Registry(neighbours.broker.bootstrap, settings=settings).start()
    shop = Shop(registry.url, {"{subject}": SUBJECT, "{version}": "1", "{context}": "."})
    until(lambda: shop.ask("globex.app", "POST", ("subjects", SUBJECT, "versions")).status == 200)
    found = shop.ask("globex.app", "GET", ("subjects", SUBJECT, "versions", "1")).content
    shop.values.update({"{id}": str(found["id"]), "{guid}": found["guid"]})
    yield shop
    registry.stop()


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=IDS)
def test_every_route_on_the_neighbour(shop: Shop, method: str, path: tuple[str, ...]) -> None:
    before = shop.dump()
    answer = shop.ask("acme.app", method, path)
    assert "globex" not in json.dumps(answer.content).lower().replace(SUBJECT, "")
    assert shop.dump() == before
    if "{subject}" in path or (method, path[:1][0] if path else "") in OF_ALL:
        assert (answer.status, answer.code) == (403, 40301)
    elif "{id}" in path or "{guid}" in path:
        assert answer.status == 404 or answer.content == []
    else:
        assert answer.status == 200 and SUBJECT not in json.dumps(answer.content)


@pytest.mark.parametrize("path", [path for method, path in ROUTES if method == "GET"], ids="/".join)
def test_the_neighbour_itself_sees_it(shop: Shop, path: tuple[str, ...]) -> None:
    """So the requests above are refused for no other reason."""
    answer = shop.ask("globex.app", "GET", path)
    if "{id}" in path or "{guid}" in path or path in (("subjects",), ("schemas",)):
        assert answer.status == 200 and answer.content
    else:
        assert answer.status in (200, 404), "404: settings or metadata that it does not have"
