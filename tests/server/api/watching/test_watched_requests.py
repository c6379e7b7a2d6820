"""The requests of one client, asked of real nodes while somebody watches it; and nothing where nobody does."""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient as StockClient
from confluent_kafka.admin import NewTopic
from tests.server.talk import FETCH_VERSION, fetch_request
from tests.support.processes.local_cluster import LocalCluster
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S, until

from ottla import AclEntry, Admin
from ottla.client.admin.requests import ClientRequest
from ottla.client.blocking.blocking import Blocking
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import CLUSTER_NAME, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.server.api.api_table import SERVED
from ottla.server.api.watching.watched_requests import RequestEye, WatchedRequests
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.topics.metadata import MetadataRequest


@pytest.fixture
def client(ottla_broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create("t")
        yield client


def seen(client: Blocking, client_id: str) -> list[ClientRequest]:
    (of_node,) = client.admin.requests.of(client_id)
    return [*of_node.requests]


def eyes(broker: EmbeddedBroker) -> int:
    """How many connections somebody looks at."""
    return sum(isinstance(each.around, RequestEye) for each in broker.node.rooms.connections.connections)


def test_requests_and_errors_of_one_client(ottla_broker: EmbeddedBroker, client: Blocking) -> None:
    assert seen(client, "shop") == []
    with Blocking(ClientOptions(parse_bootstrap(ottla_broker.bootstrap), client_id="shop")) as shop:
        shop.send("t", b"x")
        with pytest.raises(ApiError):
            shop.admin.topics.delete("no-such-topic")
    found = {each.api: each for each in seen(client, "shop")}
    assert {"ApiVersions", "Metadata", "Produce", "DeleteTopics"} <= set(found), "a new connection is seen at once"
    assert found["Produce"].errors == ()
    assert found["DeleteTopics"].errors == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
    deletion = found["DeleteTopics"]
    assert (deletion.client_id, deletion.principal, deletion.host) == ("shop", "User:ANONYMOUS", "127.0.0.1")
    assert (deletion.version, deletion.outcome) == (SERVED[20][1], "")
    assert deletion.size_bytes > 20 and 0 < deletion.total_ms < 60_000
    assert "OttlaDescribeRequests" not in found, "it is of another client"


def test_waiting_is_told_as_remote(ottla_broker: EmbeddedBroker, client: Blocking) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        connection.call(MetadataRequest(topics=[]), 12)
        assert ("raw", "User:ANONYMOUS", 1) in client.admin.requests.clients()
        assert seen(client, "raw") == []
        connection.call(fetch_request({("t", 0): 0}, min_bytes=1, max_wait_ms=300), FETCH_VERSION)
        (fetch,) = seen(client, "raw")
    assert fetch.api == "Fetch" and fetch.remote_ms >= 250 > fetch.local_ms


def test_a_client_that_leaves_its_request(ottla_broker: EmbeddedBroker, client: Blocking) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        connection.call(MetadataRequest(topics=[]), 12)
        seen(client, "raw")
        waiting = fetch_request({("t", 0): 0}, min_bytes=1, max_wait_ms=30_000)
        connection.send(request_frame(waiting, FETCH_VERSION, 2, "raw"))
    found = until(lambda: seen(client, "raw"), bool)
    assert (found[0].api, found[0].outcome) == ("Fetch", "the client has left")


def test_nobody_watches_and_nothing_is_left(
    ottla_broker: EmbeddedBroker, client: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (eyes(ottla_broker), client.admin.requests.clients() != []) == (0, True)
    assert eyes(ottla_broker) == 0, "listing the clients watches nobody"
    monkeypatch.setattr(limits, "REQUEST_WATCH_S", 0.5)
    seen(client, "ottla")
    seen(client, "raw")
    assert eyes(ottla_broker) == len(ottla_broker.node.rooms.connections.connections) > 0
    until(lambda: eyes(ottla_broker), lambda count: count == 0)
    with RawConnection(ottla_broker.bootstrap) as connection:
        connection.call(MetadataRequest(topics=[]), 12)
        assert eyes(ottla_broker) == 0, "new connections are left alone, too"
    assert all(each.api != "Metadata" for each in seen(client, "raw")), "nothing is known from before"


def test_whoever_asks_again_keeps_the_watch(
    ottla_broker: EmbeddedBroker, client: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REQUEST_WATCH_S", 3)
    (begun,) = client.admin.requests.of("shop")

    def asked() -> int:
        (now,) = client.admin.requests.of("shop")
        assert now.since_ms == begun.since_ms
        return ottla_broker.clock.now_ms()

    until(asked, lambda now_ms: now_ms > begun.since_ms + 6_000)


def test_few_requests_of_few_clients_are_kept(
    ottla_broker: EmbeddedBroker, client: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REQUESTS_SEEN_MAX", 3)
    monkeypatch.setattr(limits, "REQUEST_WATCHES_MAX", 2)
    client.admin.requests.of("ottla")
    for _ in range(5):
        client.admin.topics.names()
    (found,) = client.admin.requests.of("ottla")
    assert (len(found.requests), found.count >= 5) == (3, True)
    client.admin.requests.of("second", principal="User:ANONYMOUS")
    with pytest.raises(ApiError, match="watched already") as refused:
        client.admin.requests.of("third")
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    with pytest.raises(ApiError, match="characters"):
        client.admin.requests.of("x" * 251)
    assert client.admin.requests.of("ottla"), "the watches that there are go on"


def test_one_asker_leaves_watches_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_WATCH_S", 4)
    with SecureBroker(tmp_path / "data") as broker:
        broker.add_user("other", "correct horse")
        with Blocking(broker.bootstrap, security=broker.security) as first:
            cluster = AclResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL
            allowed = AclEntry(*cluster, "User:other", "*", AclOperation.DESCRIBE, AclPermission.ALLOW)
            first.run(Admin(first.cluster).acls.create([allowed]))
            for number in range(limits.REQUEST_WATCHES_PER_ASKER_MAX):
                first.admin.requests.of(f"c{number}")
            with pytest.raises(ApiError, match="You watch the requests of 4 clients already") as refused:
                first.admin.requests.of("more")
            assert refused.value.code == ErrorCode.POLICY_VIOLATION
            with Blocking(broker.bootstrap, security=broker.security_of("other")) as second:
                second.admin.requests.of("more")
                second.admin.requests.of("c0")
            with pytest.raises(ApiError, match="You watch"):
                first.admin.requests.of("more")
            first.admin.requests.of("c0")

            def asked() -> bool:
                try:
                    return bool(first.admin.requests.of("more"))
                except ApiError:
                    return False

            until(asked, bool)


def test_a_stopped_node_looks_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loop may go on, as in a process with several nodes."""
    looks: list[TimerHandle] = []
    look_later = WatchedRequests._look_later

    def noted(watched: WatchedRequests) -> None:
        look_later(watched)
        assert watched._next_look is not None
        looks.append(watched._next_look)

    monkeypatch.setattr(WatchedRequests, "_look_later", noted)
    with EmbeddedBroker(tmp_path / "data") as broker:
        with Blocking(broker.bootstrap) as client:
            client.admin.requests.of("shop")
        assert [each.cancelled() for each in looks] == [False]
    assert [each.cancelled() for each in looks] == [True]


def test_by_principal_with_the_right_to_see_it(tmp_path: Path) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        broker.add_user("shop", "correct horse")
        with Blocking(broker.bootstrap, security=broker.security) as client:
            client.admin.requests.of(principal="User:shop")
            stock = StockClient({**broker.client_settings("shop"), "client.id": "stock"})
            with pytest.raises(KafkaException):
                stock.create_topics([NewTopic("mine", 1, 1)])["mine"].result(WAIT_S)
            (found,) = client.admin.requests.of(principal="User:shop")
            (created,) = [each for each in found.requests if each.api == "CreateTopics"]
            assert (created.principal, created.client_id) == ("User:shop", "stock")
            assert created.errors == (ErrorCode.TOPIC_AUTHORIZATION_FAILED,)
        with (
            Blocking(broker.bootstrap, security=broker.security_of("shop")) as weak,
            pytest.raises(ApiError) as refused,
        ):
            weak.admin.requests.of("stock")
        assert refused.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_what_the_active_controller_answers_is_seen(tmp_path: Path) -> None:
    """Brokers forward the changes of their clients; what they pass on has the controller's error codes."""
    cluster = LocalCluster(tmp_path / "data", "--brokers", "3")
    try:
        with Blocking(cluster.bootstrap) as client:
            assert len(client.admin.requests.of("stock")) == 3
            for port in range(3):
                stock = Blocking(ClientOptions(parse_bootstrap(cluster.bootstrap.split(",")[port]), client_id="stock"))
                with stock, pytest.raises(ApiError):
                    stock.admin.topics.delete("no-such-topic")
            found = [each for of_node in client.admin.requests.of("stock") for each in of_node.requests]
    finally:
        cluster.stop()
    deletions = [each for each in found if each.api == "DeleteTopics"]
    assert any(each.is_forwarded for each in deletions)
    assert {each.errors for each in deletions} == {(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)}
