"""The requests of one client, live: what a stock client asks for, and what fails."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient as StockClient
from tests.console.consoles import Visitor, running_console
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.console.options import ConsoleOptions
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(1)</script>\u202e'


def test_errors_of_a_stock_client_are_marked(broker: EmbeddedBroker, visitor: Visitor) -> None:
    with Blocking(broker.bootstrap) as client:
        client.admin.topics.create("small", configs={"max.message.bytes": "1000"})
    begun = visitor.get("/requests/client?client_id=stock-shop")
    assert (begun.status, "no request yet" in begun.words) == (200, True)
    part = "/requests/client/now?client_id=stock-shop"
    assert f'data-live="{part}"' in begun.text
    settings = {"bootstrap.servers": broker.bootstrap, "client.id": "stock-shop"}
    producer = Producer(settings)
    producer.produce("small", bytes(5_000))
    producer.flush(WAIT_S)
    shown = until(lambda: visitor.part(part).text, lambda text: "MESSAGE_TOO_LARGE" in text)
    assert '<span class="badge bad">MESSAGE_TOO_LARGE</span>' in shown
    stock = StockClient(settings)
    with pytest.raises(KafkaException):
        stock.delete_topics(["no-such-topic"])["no-such-topic"].result(WAIT_S)
    words = until(lambda: visitor.part(part).words, lambda words: "UNKNOWN_TOPIC_OR_PARTITION" in words)
    assert words.index("DeleteTopics") < words.index("Produce"), "newest first"
    assert "User:ANONYMOUS" in words and "127.0.0.1" in words and "Watched since" in words
    listed = visitor.get("/requests/client")
    assert "/requests/client?client_id=stock-shop" in listed.text and 'value="stock-shop"' in listed.text
    with_principal = visitor.get("/requests/client?principal=User:ANONYMOUS&client_id=stock-shop").words
    assert "no request yet" in with_principal, "it is a watch of its own"
    assert "/requests/client" in visitor.get("/requests").text


def test_hostile_names_are_text(broker: EmbeddedBroker, visitor: Visitor) -> None:
    path = f"/requests/client?client_id={quote(HOSTILE)}"
    assert visitor.get(path).status == 200
    with Blocking(ClientOptions(parse_bootstrap(broker.bootstrap), client_id=HOSTILE)) as hostile:
        hostile.admin.topics.names()
        for shown in (visitor.get(path), visitor.get("/requests/client")):
            assert "<img src=x" not in shown.text and "<script>alert" not in shown.text
            assert "onerror=alert(1)" in shown.words
            assert "\\u202e" in shown.words
    assert visitor.get(f"/requests/client?client_id={'x' * 300}").status == 400
    assert visitor.get("/requests/client?client_id=%00").status == 200


def test_who_may_not_describe_the_cluster_sees_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    with SecureBroker(tmp_path_factory.mktemp("secure") / "data") as broker:
        broker.add_user("weak", "correct horse")
        security = ClientOptions(parse_bootstrap(broker.bootstrap), security=broker.security).known_security
        options = ConsoleOptions(broker.bootstrap, port=0, security=security, signs_in=True)
        with running_console(options) as console:
            weak = Visitor(console.url)
            assert weak.send("/sign-in", "/sign-in", user="weak", password="correct horse").status == 200
            for path in ("", "?client_id=ottla", "/now?client_id=ottla"):
                shown = weak.part(f"/requests/client{path}") if "now" in path else weak.get(f"/requests/client{path}")
                assert (shown.status, "Metadata" in shown.words) == (403, False), path


def test_a_real_kafka_does_not_tell(real_kafka: RealKafka) -> None:
    with running_console(ConsoleOptions(real_kafka.bootstrap, port=0)) as console:
        for path in ("", "?client_id=ottla"):
            shown = Visitor(console.url).get(f"/requests/client{path}")
            assert (shown.status, "Ottla's brokers only" in shown.words) == (200, True)
