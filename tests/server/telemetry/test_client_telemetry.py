"""A node and clients that push metrics to it: rules, refusals, and what a scrape tells of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.metrics.scraping import ON, scraped
from tests.server.talk import eventually
from tests.server.telemetry.talk import CLIENT_METRICS, GET, PAYLOAD, PUSH, TelemetryTalk, subscribe
from tests.support.requests.raw import RawConnection
from tests.telemetry.pushes import CUMULATIVE, counter, gauge, payload

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import METADATA_TOPIC_ID, NO_ID, uuid_text
from ottla.records.compress import Codec, compress
from ottla.server.telemetry.client_telemetry import ClientTelemetry
from ottla.telemetry import subscription
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

OK, THROTTLED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED
QUEUE_TIME = "ottla_client_producer_record_queue_time_avg"
LEFT_OUT = "ottla_telemetry_values_left_out_total"
INTERVAL_S = 10


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    settings = {**ON, "ottla.metrics.clients.max": 3, "telemetry.max.bytes": 100_000}
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        subscribe(broker.bootstrap, metrics="*", interval_ms=INTERVAL_S * 1000)
        yield broker


@pytest.fixture
def talk(broker: EmbeddedBroker) -> Iterator[TelemetryTalk]:
    talk = TelemetryTalk(broker.bootstrap)
    yield talk
    talk.close()


def telemetry(broker: EmbeddedBroker) -> ClientTelemetry:
    assert broker.node is not None
    found = broker.node.rooms.telemetry
    assert found is not None
    return found


def who(talk: TelemetryTalk) -> dict[str, str]:
    return {"client_id": talk.client_id, "client_instance_id": uuid_text(talk.instance_id)}


def offered(bootstrap: str) -> set[int]:
    with RawConnection(bootstrap) as connection:
        answer = connection.call(ApiVersionsRequest(client_software_name="me", client_software_version="1"), 3)
        return {each.api_key for each in answer.api_keys}  # type: ignore[attr-defined]


class TestOffer:
    def test_a_node_that_tells_metrics(self, broker: EmbeddedBroker) -> None:
        assert {GET, PUSH} <= offered(broker.bootstrap)

    def test_any_other_node(self, tmp_path: Path) -> None:
        with EmbeddedBroker(tmp_path / "data") as broker:
            assert not {GET, PUSH} & offered(broker.bootstrap)
            talk = TelemetryTalk(broker.bootstrap)
            assert talk.ask() == ErrorCode.UNSUPPORTED_VERSION
            assert talk.push() == ErrorCode.UNSUPPORTED_VERSION
            talk.close()


class TestSubscriptions:
    def test_what_a_client_is_told(self, talk: TelemetryTalk) -> None:
        answer = talk.asked()
        assert answer.client_instance_id not in (NO_ID, METADATA_TOPIC_ID)
        assert answer.requested_metrics == ["*"]
        assert (answer.push_interval_ms, answer.telemetry_max_bytes) == (INTERVAL_S * 1000, 100_000)
        assert answer.accepted_compression_types == [4, 3, 1, 2]
        assert answer.delta_temporality

    def test_a_client_may_choose_its_id(self, talk: TelemetryTalk) -> None:
        talk.instance_id = bytes(range(16))
        assert talk.asked().client_instance_id == bytes(range(16))

    def test_they_are_matched_with_what_is_known_of_the_client(self, broker: EmbeddedBroker) -> None:
        matches = {
            "id": "client_id=app-.*",
            "name": "client_software_name=me,client_software_version=1[.]0",
            "unknown": "client_software_name=unknown",
            "address": "client_source_address=127[.]0[.]0[.]1,client_source_port=[0-9]+",
            "nobody": "client_id=app-.*,client_software_name=other",
        }
        subscribe(broker.bootstrap, metrics="", match="client_id=nobody")
        for name, match in matches.items():
            subscribe(broker.bootstrap, name, metrics=name, match=match)
        for client_id, said_name, expected in (
            ("app-1", True, ["address", "id", "name"]),
            ("other", False, ["address", "unknown"]),
        ):
            talk = TelemetryTalk(broker.bootstrap, client_id=client_id, said_name=said_name)
            assert talk.asked().requested_metrics == expected
            talk.close()

    def test_a_change_is_told_at_once(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        before = talk.asked().subscription_id
        assert talk.ask() == THROTTLED
        subscribe(broker.bootstrap, metrics="a.b", interval_ms=20_000)
        assert talk.push() == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        answer = talk.asked()
        assert (answer.requested_metrics, answer.push_interval_ms) == (["a.b"], 20_000)
        assert answer.subscription_id != before
        with RawConnection(broker.bootstrap) as connection:
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource
            gone = [
                resource.AlterableConfig(name=name, config_operation=1, value=None)
                for name in ("metrics", "interval.ms")
            ]
            asked = resource(resource_type=CLIENT_METRICS, resource_name="s", configs=gone)
            connection.call(IncrementalAlterConfigsRequest(resources=[asked], validate_only=False), 1)
        assert talk.asked().requested_metrics == []
        assert scraped(broker)("ottla_telemetry_subscriptions") == 0

    def test_they_survive_a_restart(self, broker: EmbeddedBroker) -> None:
        broker.stop()
        broker.start()
        talk = TelemetryTalk(broker.bootstrap)
        assert talk.asked().requested_metrics == ["*"]
        talk.close()

    def test_matching_that_takes_too_much_work(
        self, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "TELEMETRY_MATCHING_WORK_MAX", 500)
        subscribe(broker.bootstrap, "t", metrics="slow", match="client_id=" + "(.*b|.*c|.*d)" * 20)
        talks = [TelemetryTalk(broker.bootstrap, client_id="a" * 200) for _ in range(2)]
        for talk in talks:
            assert talk.asked().requested_metrics == ["*"]
            talk.close()
        assert len([each for each in caplog.records if "too much work" in each.message]) == 1

    def test_one_that_only_kafka_can_use(
        self, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is in the metadata that a Kafka wrote."""
        with RawConnection(broker.bootstrap) as connection:
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource
            match = resource.AlterableConfig(name="match", config_operation=0, value="client_id=(?=a)a")
            asked = resource(resource_type=CLIENT_METRICS, resource_name="k", configs=[match])
            request = IncrementalAlterConfigsRequest(resources=[asked], validate_only=False)
            refused = connection.call(request, 1).responses[0]  # type: ignore[attr-defined]
            assert refused.error_code == ErrorCode.INVALID_CONFIG
            assert refused.error_message == "Illegal client matching pattern: client_id=(?=a)a"
            monkeypatch.setattr(subscription, "check_subscription", lambda *_: None)
            assert not connection.call(request, 1).responses[0].error_code  # type: ignore[attr-defined]
        talk = TelemetryTalk(broker.bootstrap)
        assert talk.asked().requested_metrics == ["*"]
        talk.close()
        assert any("subscription k has no effect" in each.message for each in caplog.records)

    def test_a_snapshot_makes_another_version(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        talk.asked()
        assert talk.ask() == THROTTLED
        subscriptions = telemetry(broker).subscriptions
        before = subscriptions.version
        assert broker.node is not None
        broker.node.runtime.loop.call_soon_threadsafe(broker.node.metadata.reloads.tell)
        eventually(lambda: subscriptions.version > before)
        assert talk.asked().requested_metrics == ["*"]

    def test_their_number_is_bounded(
        self, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "TELEMETRY_SUBSCRIPTIONS_MAX", 2)
        for name in ("t", "u"):
            subscribe(broker.bootstrap, name, metrics=name)
        talk = TelemetryTalk(broker.bootstrap)
        talk.asked()
        talk.close()
        assert len(telemetry(broker).subscriptions.all()) == 2
        assert any("subscription u has no effect" in each.message for each in caplog.records)


class TestPushes:
    def test_a_push_is_told(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        talk.asked()
        pushed = payload(
            gauge("org.apache.kafka.producer.record.queue.time.avg", 2.5),
            counter("org.apache.kafka.producer.topic.record.send.total", 3, topic="t"),
            group_id="g",
            client_rack="r",
        )
        assert talk.push(pushed) == OK
        found = scraped(broker)
        assert found(QUEUE_TIME, **who(talk)) == 2.5
        assert found("ottla_client_producer_topic_record_send_total", topic="t", **who(talk)) == 3
        about = {"software": "me", "software_version": "1.0", "address": "127.0.0.1", "rack": "r", "group_id": "g"}
        nothing = {"group_member_id": "", "transactional_id": ""}
        assert found("ottla_telemetry_client_info", **who(talk), **about, **nothing) == 1
        assert found("ottla_telemetry_pushes_total", error="NONE") == 1
        assert found("ottla_telemetry_received_bytes_total") == len(pushed)
        assert found("ottla_telemetry_client_instances") == 1
        assert found(LEFT_OUT) == 0

    def test_deltas_add_up(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        talk.asked()
        for _ in range(3):
            assert talk.push(payload(counter("sent", 2), counter("whole", 5, CUMULATIVE))) == OK
            broker.clock.advance(f"{INTERVAL_S}s")
        found = scraped(broker)
        assert found("ottla_client_sent_total", **who(talk)) == 6
        assert found("ottla_client_whole_total", **who(talk)) == 5

    @pytest.mark.parametrize("codec", list(Codec))
    def test_every_codec(self, broker: EmbeddedBroker, talk: TelemetryTalk, codec: Codec) -> None:
        talk.asked()
        assert talk.push(compress(codec, PAYLOAD), codec) == OK
        assert scraped(broker)(QUEUE_TIME, **who(talk)) == 1.5

    def test_the_interval(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        talk.asked()
        assert [talk.push(), talk.push(), talk.ask()] == [OK, THROTTLED, THROTTLED]
        broker.clock.advance(f"{INTERVAL_S}s")
        assert [talk.push(), talk.push()] == [OK, THROTTLED]
        assert scraped(broker)("ottla_telemetry_pushes_total", error="THROTTLING_QUOTA_EXCEEDED") == 2

    def test_refusals(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        talk.asked()
        talk.subscription_id += 1
        assert talk.push() == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        talk.asked()
        broker.clock.advance(f"{INTERVAL_S}s")
        assert talk.push(compression=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        talk.asked()
        broker.clock.advance(f"{INTERVAL_S}s")
        assert talk.push(bytes(100_001)) == ErrorCode.TELEMETRY_TOO_LARGE
        for reserved in (NO_ID, METADATA_TOPIC_ID):
            talk.instance_id = reserved
            assert talk.push() == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize(
        ("bad", "codec"),
        [
            (b"\x0a\x05abc", 0),
            (b"no codec", Codec.GZIP),
            (b"no codec", Codec.ZSTD),
            (compress(Codec.GZIP, bytes(limits.TELEMETRY_UNPACKED_BYTES_MAX + 1)), Codec.GZIP),
            (b"\x10\x01" * 50_000 + PAYLOAD[:-1], 0),
        ],
    )
    def test_what_cannot_be_read(
        self,
        broker: EmbeddedBroker,
        talk: TelemetryTalk,
        bad: bytes,
        codec: int,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        caplog.set_level(logging.INFO)
        monkeypatch.setattr(telemetry(broker), "bytes_max", 200_000)
        talk.asked()
        assert talk.push(bad, codec) == ErrorCode.INVALID_RECORD
        assert any("cannot be read" in each.message for each in caplog.records)
        found = scraped(broker)
        assert found("ottla_telemetry_pushes_total", error="INVALID_RECORD") == 1
        assert QUEUE_TIME not in found.text

    def test_the_last_push(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        """It may come at once, and is told after the client has left."""
        talk.asked()
        assert talk.push() == OK
        assert talk.push(payload(gauge("last", 1)), is_last=True) == OK
        assert talk.push() == ErrorCode.INVALID_REQUEST
        talk.close()
        assert scraped(broker)("ottla_client_last", **who(talk)) == 1
        broker.clock.advance("75s")
        eventually(lambda: "ottla_client_last" not in scraped(broker).text)

    def test_an_empty_push(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        talk.asked()
        assert talk.push(b"") == OK
        assert scraped(broker)("ottla_telemetry_pushes_total", error="NONE") == 1

    def test_an_instance_ends_with_its_connection(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        talk.asked()
        assert talk.push() == OK
        other = TelemetryTalk(broker.bootstrap)
        other.instance_id, other.subscription_id = talk.instance_id, talk.subscription_id
        assert other.push() == THROTTLED
        talk.close()
        eventually(lambda: not len(telemetry(broker).instances))
        assert other.push() == OK
        other.close()

    def test_one_connection_keeps_a_few_instances_with_short_texts(self, broker: EmbeddedBroker) -> None:
        talk = TelemetryTalk(broker.bootstrap, client_id="\N{GRINNING FACE}" * 8_000)
        most, known = limits.TELEMETRY_INSTANCES_PER_CONNECTION_MAX, telemetry(broker).instances
        for number in range(1, 3 * most):
            talk.instance_id = (number + 100).to_bytes(16)
            assert (talk.asked().requested_metrics, talk.push()) == (["*"], OK)
            assert len(known) == min(number, most)
        told = [*telemetry(broker).pushed]
        assert len(told) == min(most, 3)
        assert {len(each.client.client_id) for each in told} == {limits.TELEMETRY_CLIENT_CHARS_MAX}
        talk.close()
        eventually(lambda: not len(known))
        assert len(telemetry(broker).pushed) == len(told), "what was pushed is told after the end"

    def test_what_nobody_asked_for_is_not_kept(self, broker: EmbeddedBroker) -> None:
        subscribe(broker.bootstrap, metrics="*", match="client_id=app")
        talk = TelemetryTalk(broker.bootstrap, client_id="other")
        assert talk.asked().requested_metrics == []
        talk.subscription_id += 1
        assert talk.push() == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        assert talk.asked().requested_metrics == []
        broker.clock.advance("300s")
        assert [talk.push(), talk.push()] == [OK, THROTTLED]
        found = scraped(broker)
        assert QUEUE_TIME not in found.text and not len(telemetry(broker).pushed)
        assert found("ottla_telemetry_pushes_total", error="NONE") == 1
        talk.close()

    def test_too_many_clients_and_values(self, broker: EmbeddedBroker) -> None:
        talks = [TelemetryTalk(broker.bootstrap, client_id=f"app-{number}") for number in range(4)]
        for talk in talks:
            talk.asked()
            assert talk.push(payload(gauge("a", 1), gauge("b", 1))) == OK
        found = scraped(broker)
        assert found.labels("ottla_client_a", "client_id") == {"app-0", "app-1", "app-2"}
        assert found(LEFT_OUT) == 2
        assert found("ottla_telemetry_client_instances") == 4
        for talk in talks:
            talk.close()

    def test_too_many_pushes_at_once(
        self, broker: EmbeddedBroker, talk: TelemetryTalk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        talk.asked()
        monkeypatch.setattr(limits, "TELEMETRY_BYTES_WAITING_MAX", len(PAYLOAD) - 1)
        assert talk.push() == THROTTLED
        monkeypatch.undo()
        broker.clock.advance(f"{INTERVAL_S}s")
        monkeypatch.setattr(limits, "TELEMETRY_PUSHES_WAITING_MAX", 0)
        assert talk.push() == THROTTLED
        monkeypatch.undo()
        broker.clock.advance(f"{INTERVAL_S}s")
        assert talk.push() == OK

    def test_a_last_push_without_room_may_be_repeated(
        self, talk: TelemetryTalk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        talk.asked()
        monkeypatch.setattr(limits, "TELEMETRY_PUSHES_WAITING_MAX", 0)
        assert talk.push(is_last=True) == THROTTLED
        monkeypatch.undo()
        assert talk.push(is_last=True) == OK
        assert talk.push(is_last=True) == ErrorCode.INVALID_REQUEST

    def test_hostile_names_are_told_as_text(self, broker: EmbeddedBroker, talk: TelemetryTalk) -> None:
        talk.asked()
        metrics = [gauge('x{a="b"} 1\n# TYPE y', 1, **{'l"\n': 'v"\n\\', "__name__": "n", "client_id": "other"})]
        assert talk.push(payload(*metrics)) == OK
        labels = {"l": 'v"\n\\', "name": "n", "label_client_id": "other", **who(talk)}
        assert scraped(broker).samples["ottla_client_x_a_b_1_type_y", tuple(sorted(labels.items()))] == 1
