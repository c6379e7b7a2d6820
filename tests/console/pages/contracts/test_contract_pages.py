"""The pages of contracts: what is checked of which topic, what was refused, and changing it with a preview."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.console.consoles import Visitor, running_console
from tests.console.signed_in import secured_console, signed_in
from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import DeliveryFailed
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.console.options import ConsoleOptions
from ottla.model.errors import ApiError
from ottla.model.resources import Resource
from ottla.model.settings.own import OTTLA_METRICS_LISTENER
from ottla.model.topic_settings import OTTLA_SCHEMA_VALIDATION, OTTLA_SCHEMA_VALIDATION_ACTION
from ottla.schemas.schema import SchemaSource
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

CHECK, ACTION = OTTLA_SCHEMA_VALIDATION.name, OTTLA_SCHEMA_VALIDATION_ACTION.name
FIELDS = {"check": "full", "of": "value", "subject": "topic", "failing": "reject", "letters": ""}


@pytest.fixture(scope="module")
def told_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker that tells its metrics."""
    settings = {OTTLA_METRICS_LISTENER.name: f"127.0.0.1:{free_ports(1)[0]}"}
    with EmbeddedBroker(tmp_path_factory.mktemp("told"), settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def console(told_broker: EmbeddedBroker) -> Iterator[Visitor]:
    registry = RegistryOptions.of(told_broker.registry.url)
    with running_console(ConsoleOptions(told_broker.bootstrap, port=0, registry=registry)) as service:
        yield Visitor(service.url)


@pytest.fixture(scope="module")
def client(told_broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(told_broker.bootstrap) as made:
        yield made


def value_of(client: Blocking, topic: str, name: str) -> str | None:
    return client.admin.configs.describe(Resource.topic(topic), [name])[0].value


def test_no_topic_is_under_contract_at_first(console: Visitor, client: Blocking) -> None:
    client.admin.topics.create("plain")
    shown = console.get("/contracts")
    assert "no topic is under contract" in shown.words
    assert "records are not checked" in console.get("/contracts/-/choose?topic=plain").words


def test_a_contract_is_previewed_and_made(console: Visitor, client: Blocking, told_broker: EmbeddedBroker) -> None:
    client.admin.topics.create("orders")
    page, preview = "/contracts/orders", "/contracts/orders/preview"
    shown = console.send(page, preview, **{**FIELDS, "failing": "dlq"})
    assert f"{CHECK} none full" in shown.words and f"{ACTION} reject dlq" in shown.words
    assert "orders-value is not registered: every record fails until it is registered" in shown.words
    assert "orders.dlq" in shown.words
    assert value_of(client, "orders", CHECK) == "none"  # a preview changes nothing
    registry = SchemaRegistry(RegistryOptions.of(told_broker.registry.url))
    registry.register("orders-value", SchemaSource('"string"'))
    shown = console.send(page, preview, **FIELDS)
    assert "is not registered" not in shown.words
    done = confirm(console, shown.text, "/contracts/orders/change")
    assert "The contract of orders was changed" in done
    assert (value_of(client, "orders", CHECK), value_of(client, "orders", ACTION)) == ("full", "reject")
    assert "nothing would change" in console.send(page, preview, **FIELDS).words


def confirm(console: Visitor, text: str, action: str) -> str:
    """Send the form that a preview ends with."""
    form = text.partition(f'action="{action}"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form))
    return console.post(action, fields).words


def test_refusals_are_counted(console: Visitor, client: Blocking, told_broker: EmbeddedBroker) -> None:
    client.admin.topics.create("strict", configs={CHECK: "id"})
    for _ in range(3):
        with pytest.raises((ApiError, DeliveryFailed)):
            client.send("strict", b"no schema")
    shown = console.get("/contracts?q=strict")
    assert "strict id value reject strict-value missing 3" in shown.words
    assert "batches refused" in shown.words


def test_what_is_wrong_is_refused_in_the_preview(console: Visitor, client: Blocking) -> None:
    client.admin.topics.create("wrong")
    for fields in ({"check": "perhaps"}, {"failing": "shred"}, {"letters": "a/b", "failing": "dlq"}):
        shown = console.send("/contracts/wrong", "/contracts/wrong/preview", **{**FIELDS, **fields})
        assert shown.status == 400, shown.words
    assert console.get("/contracts/nosuch").status == 404
    script = "/contracts/%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    assert "<script>alert" not in console.get(script).text


def test_ending_a_contract_says_what_follows(console: Visitor, client: Blocking) -> None:
    client.admin.topics.create("ending", configs={CHECK: "id", ACTION: "tag"})
    fields = {**FIELDS, "check": "none", "failing": "tag"}
    shown = console.send("/contracts/ending", "/contracts/ending/preview", **fields)
    assert "records that break the schema will be written from then on" in shown.words
    confirm(console, shown.text, "/contracts/ending/change")
    entry = client.admin.configs.describe(Resource.topic("ending"), [CHECK])[0]
    assert (entry.value, entry.is_default) == ("none", True)


def test_the_rights_are_those_of_the_visitor(tmp_path: Path) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        password = broker.add_user("weak")
        broker.allow("weak", "Describe", "DescribeConfigs", topic="shown")
        with Blocking(broker.bootstrap, security=broker.security) as client:
            for topic in ("shown", "secret"):
                client.admin.topics.create(topic, configs={CHECK: "id"})
            with secured_console(broker) as url:
                visitor = signed_in(url, "weak", password)
                shown = visitor.get("/contracts").words
                assert "shown id" in shown and "secret" not in shown
                assert visitor.get("/contracts/secret").status in (403, 404)
                page = "/contracts/shown"
                assert visitor.send(page, f"{page}/preview", **{**FIELDS, "check": "none"}).status == 403
                token = visitor.get(page).text.partition('name="_token" value="')[2].partition('"')[0]
                refused = visitor.post(f"{page}/change", {"_token": token, **FIELDS, "check": "none"})
                assert refused.status == 403, refused.words
            assert value_of(client, "shown", CHECK) == "id"


@pytest.mark.slow
def test_a_real_kafka(real_kafka: RealKafka) -> None:
    with running_console(ConsoleOptions(real_kafka.bootstrap, port=0)) as service:
        shown = Visitor(service.url).get("/contracts")
    assert "these brokers are not Ottla's" in shown.words
