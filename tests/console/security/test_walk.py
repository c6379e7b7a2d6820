"""Every route, declared now or later, as a user without rights: nothing fails, nothing is told, nothing changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.console.consoles import Shown, Visitor
from tests.console.pages.groups.people import token
from tests.console.signed_in import secured_console, signed_in

from ottla.client.blocking.blocking import Blocking
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.console import pages
from ottla.console.html import path_to
from ottla.console.routing import ROUTES, PageRoute
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.schemas.schema import SchemaSource
from ottla.testing.secure import SecureBroker

SECRET = "payroll-2026"  # the name of a topic, a group, a subject and a transactional id
CONTENT = "TOP-SECRET-CONTENT"
UNKNOWN = "no-such-thing"
_PLACES = {"partition": "0", "offset": "0", "what": "value", "broker": "1", "setting": "retention.ms", "digest": "0"}
_ASKED = {
    "q": "pay",
    "in": "value",
    "text": CONTENT[:3],
    "seconds": "1",
    "to": "latest",
    "topic": SECRET,
    "before": "all",
    "query": f"select * from topic('{SECRET}')",
    "format": "csv",
    "principal": "weak",
    "operation": "read",
    "resource": "topic",
    "name": "x",
    "user": "admin",
    "old": "1",
    "new": "1",
}
# Something for every field of every form: what a person who wants to do harm would type.
_TYPED = {
    **_ASKED,
    "name": SECRET,
    "subject": f"{SECRET}-value",
    "total": "9",
    "value": "1",
    "value_format": "text",
    "key_format": "null",
    "headers": "a=b",
    "what": "reset",
    "before": "0:1",
    "moves": json.dumps([[SECRET, 0, 1, 0]]),
    "places": "[[0, 0]]",
    "letter": "0:0",
    "reason": "none",
    "started_ms": "0",
    "producer_id": "0",
    "kind": "AVRO",
    "schema": '"string"',
    "level": "NONE",
    "check": "",
    "scope": "all",
    "user": "weak",
    "password": "x",
    "mechanism": "all",
    "quota": "producer_byte_rate",
    "permission": "allow",
    "operation": "all",
    "host": "*",
    "pattern": "literal",
    "tenant": "mine",
    "feature": "metadata.version",
    "failing": "reject",
    "of": "value",
}


class Walked(NamedTuple):
    """A cluster with something to hide, and a visitor who may see nothing of it."""

    broker: SecureBroker
    weak: Visitor
    token: str


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walked]:
    pages.load()
    with SecureBroker(tmp_path_factory.mktemp("secure")) as broker:
        with Blocking(broker.bootstrap, security=broker.security) as client:
            client.admin.topics.create(SECRET, 1)
            client.send(SECRET, CONTENT.encode(), key=CONTENT.encode())
            client.admin.groups.set_offsets(SECRET, {TopicPartition(SECRET, 0): 1})
        registry = SchemaRegistry(RegistryOptions.of(broker.registry.url, broker.registry_security_of()))
        registry.register(f"{SECRET}-value", SchemaSource(json.dumps({"type": "string", "doc": CONTENT})))
        password = broker.add_user("weak")
        with secured_console(broker, registry=True) as url:
            weak = signed_in(url, "weak", password)
            yield Walked(broker, weak, token(weak, "/access/explain"))


def address(route: PageRoute, name: str) -> str:
    """A route's path, with the name wherever it wants one."""
    return path_to(
        *(_PLACES.get(each[1:-1], name) if each.startswith("{") else each for each in route.segments if each)
    )


def check(route: PageRoute, shown: Shown) -> None:
    assert shown.status < 500, f"{route.pattern}: {shown.status}: {shown.words[:500]}"
    assert "Traceback" not in shown.text, route.pattern
    assert CONTENT not in shown.text, f"{route.pattern} shows what is in records or schemas"


def asked_of(route: PageRoute) -> str:
    """A question for pages that take one."""
    return "&".join(path_to(**{name: value}).partition("?")[2] for name, value in _ASKED.items())


def state(broker: SecureBroker) -> object:
    """All that an action might change."""
    registry = SchemaRegistry(RegistryOptions.of(broker.registry.url, broker.registry_security_of()))
    with Blocking(broker.bootstrap, security=broker.security) as client:
        admin = client.admin
        names = sorted(admin.topics.names())
        resources = [*map(Resource.topic, names), Resource.broker(None), Resource.broker(1)]
        return {
            "topics": [(each, admin.topics.describe(each).partition_count) for each in names],
            "bounds": admin.topics.bounds(SECRET),
            "settings": [
                [(each.name, each.value) for each in admin.configs.describe(resource) if not each.is_default]
                for resource in resources
            ],
            "offsets": admin.groups.offsets(SECRET),
            "quotas": admin.quotas.describe(),
            "rules": sorted(map(str, client.run(admin.inner.acls.describe()))),
            "users": sorted(client.run(admin.inner.users.all())),
            "subjects": [(each, registry.call("GET", "subjects", each, "versions")) for each in registry.subjects()],
            "levels": registry.call("GET", "config", f"{SECRET}-value", defaultToGlobal=True),
        }


def test_no_page_tells_what_its_visitor_may_not_see(walked: Walked) -> None:
    for route in ROUTES:
        if route.method != "GET":
            continue
        for name in (SECRET, UNKNOWN):
            path = address(route, name)
            check(route, walked.weak.get(path))
            if name == SECRET:
                check(route, walked.weak.get(f"{path}?{asked_of(route)}"))
        if route.pattern == address(route, UNKNOWN):
            shown = walked.weak.get(route.pattern)
            assert SECRET not in shown.text, f"{route.pattern} shows a name"


def test_a_page_says_of_what_is_hidden_what_it_says_of_what_is_not_there(walked: Walked) -> None:
    for route in ROUTES:
        if route.method == "GET" and "{" in route.pattern and not route.pattern.startswith("/static"):
            hidden, nothing = (walked.weak.get(address(route, name)) for name in (SECRET, UNKNOWN))
            assert hidden.status == nothing.status, route.pattern
            assert hidden.words.replace(SECRET, UNKNOWN) == nothing.words, route.pattern


def test_no_action_is_taken_without_its_token(walked: Walked) -> None:
    before = state(walked.broker)
    for route in ROUTES:
        if route.method == "POST" and not route.is_open:
            for given in ({}, {"_token": ""}, {"_token": walked.token[:-1]}):
                shown = walked.weak.post(address(route, SECRET), {**_TYPED, **given})
                assert (shown.status, "too old" in shown.words) == (403, True), route.pattern
    assert state(walked.broker) == before


def test_no_action_goes_beyond_the_rights_of_its_visitor(walked: Walked) -> None:
    before = state(walked.broker)
    refused: list[str] = []
    for route in ROUTES:
        if route.method == "POST" and not route.pattern.startswith("/sign-"):
            shown = walked.weak.post(address(route, SECRET), {**_TYPED, "_token": walked.token})
            check(route, shown)
            if shown.status in (400, 403, 404):
                refused.append(route.pattern)
    assert state(walked.broker) == before
    assert len(refused) > 30, "most are refused with a sentence"
