"""Options of the source: read, defaulted, refused, and nearly right ones named."""

import json
import pickle

import pytest

from ottla.model.ids import TopicPartition
from ottla.spark.kafka_settings import parse_kafka_settings
from ottla.spark.option_values import OptionError
from ottla.spark.options import MAX_TRIGGER_DELAY, TABLE, Use, parse_options
from ottla.spark.read.loss import DataLoss, Reason
from ottla.spark.read.offsets import ByTime, Everywhere, Specific, document_of, offsets_of
from ottla.spark.read.settings import RAW_COLUMNS, ReadSettings, parse_read

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def batch(**options: str) -> ReadSettings:
    return parse_read({**SERVERS, "subscribe": "t", **options}, streaming=False)


def test_defaults_and_case() -> None:
    settings = parse_read({"KAFKA.bootstrap.SERVERS": "a:1,b:2", "SUBSCRIBE": " x , y,,x"}, streaming=False)
    assert settings.chosen.topics == ("x", "y")
    assert settings.starting == Everywhere(-2) and settings.ending == Everywhere(-1)
    assert settings.columns == RAW_COLUMNS and settings.fail_on_data_loss and not settings.read_committed
    assert parse_read({**SERVERS, "subscribe": "x"}, streaming=True).starting == Everywhere(-1)
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_offsets_in_all_forms() -> None:
    zero, one = TopicPartition("t", 0), TopicPartition("t", 1)
    assert batch(startingOffsets=" Earliest ").starting == Everywhere(-2)
    assert batch(startingOffsets='{"t":{"1":-2,"0":7}}').starting == Specific({one: -2, zero: 7})
    assert batch(startingOffsetsByTimestamp='{"t":{"0":5}}').starting == ByTime({zero: 5})
    both = batch(startingTimestamp="9", startingOffsetsByTimestamp='{"t":{"0":5}}', startingOffsets="earliest")
    assert both.starting == ByTime(9)
    assert batch(endingOffsets='{"t":{"0":-1}}').ending == Specific({zero: -1})
    assert parse_read({**SERVERS, "assign": '{"t":[1,0]}'}, streaming=False).chosen.partitions == (zero, one)
    document = document_of({one: 4, zero: 3, TopicPartition("a", 10): 1})
    assert json.dumps(document) == '{"a": {"10": 1}, "t": {"0": 3, "1": 4}}'
    assert offsets_of(document) == {zero: 3, one: 4, TopicPartition("a", 10): 1}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"subscrib": "t"}, "unknown option 'subscrib': did you mean 'subscribe'?"),
        ({"startingOffset": "earliest"}, "did you mean 'startingOffsets'?"),
        ({"kafka.bootstrap.server": "x"}, "did you mean 'kafka.bootstrap.servers'?"),
        ({"kafka.isolation.levle": "x"}, "did you mean 'kafka.isolation.level'?"),
        ({"zzzzzz": "1"}, "unknown option 'zzzzzz'"),
        ({"topic": "t"}, "'topic' is for writing"),
        ({"assign": "{}"}, "only one of the options"),
        ({"subscribe": " , "}, "no topics to subscribe to"),
        ({"startingOffsets": "latest"}, "can't be latest for batch"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "startingOffsets for t-0 can't be latest"),
        ({"endingOffsets": "earliest"}, "can't be earliest for batch"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "t-0 can't be earliest"),
        ({"startingOffsets": '{"t":["0"]}'}, 'expected e.g. {"topicA"'),
        (
            {"startingOffsets": '{"t":{"0":-7}}'},
            "startingOffsets: -7 is no offset of t-0; below zero there are only",
        ),
        ({"endingOffsets": '{"t":{"0":4,"1":-3}}'}, "endingOffsets: -3 is no offset of t-1"),
        ({"on.bad": "dlq", "dlq.topic": " t "}, "dlq.topic: topic 't' is read itself"),
        ({"dlq.topic": "dead"}, "dlq.topic has no effect with on.bad=fail"),
        ({"startingOffsets": "soon"}, 'expected e.g. {"topicA"'),
        ({"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'}, "is after the ending offset 4"),
        ({"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"1":9}}'}, "only one of them has t-0, t-1"),
        ({"startingTimestamp": "10", "endingTimestamp": "9"}, "is after endingTimestamp"),
        ({"startingTimestamp": "noon"}, "startingTimestamp: a whole number"),
        ({"minPartitions": "0"}, "minPartitions: must be positive"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss: true or false"),
        ({"startingOffsetsByTimestampStrategy": "never"}, "one of error, latest"),
        ({"columns": "value,valeu"}, "there is no column 'valeu'"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay: a time such as"),
        ({"kafka.auto.offset.reset": "earliest"}, "set the source option 'startingOffsets'"),
        ({"kafka.value.deserializer": "X"}, "values are bytes"),
        ({"kafka.enable.auto.commit": "true"}, "is not supported"),
        ({"kafka.interceptor.classes": "X"}, "is not supported"),
        ({"kafka.security.protocol": "SASL_SSL"}, "options of security: sasl.mechanism is one of"),
        ({"kafka.ssl.truststore.location": "/x"}, "certificates but no security.protocol"),
        ({"kafka.sasl.mechanismus": "PLAIN"}, "is it sasl.mechanisms?"),
        ({"kafka.bootstrap.servers": " "}, "'kafka.bootstrap.servers' must be specified"),
        ({"kafka.isolation.level": "dirty"}, "one of read_uncommitted, read_committed"),
        ({"kafka.fetch.max.bytes": "much"}, "kafka.fetch.max.bytes: a whole number"),
    ],
)
def test_what_is_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(OptionError) as refused:
        batch(**options).fetch_options()
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "one of the options subscribe, subscribePattern, assign must be specified"),
        ({"subscribePattern": "("}, "is not a regular expression"),
        ({"subscribePattern": " "}, "is empty"),
        (
            {"subscribePattern": "orders.*", "on.bad": "dlq", "dlq.topic": "my-orders-dead"},
            "matches topic 'my-orders",
        ),
        ({"assign": '{"t":[0]}', "on.bad": "dlq", "dlq.topic": "t"}, "dlq.topic: topic 't' is read itself"),
        ({"assign": '{"t":[-1]}'}, 'expected e.g. {"topicA":[0,1]'),
        ({"assign": "t"}, 'expected e.g. {"topicA":[0,1]'),
        ({"subscribe": "t", "endingOffsets": "latest"}, "ending offset not valid in streaming"),
        ({"subscribe": "t", "endingTimestamp": "5"}, "ending timestamp not valid in streaming"),
        ({"subscribe": "t", "minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "is higher than"),
    ],
)
def test_what_streams_refuse(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse_read({**SERVERS, **options}, streaming=True)
    assert complaint in str(refused.value)


def test_kafka_settings_become_ours() -> None:
    settings = batch(
        **{
            "kafka.isolation.level": "READ_COMMITTED",
            "kafka.max.partition.fetch.bytes": "1000",
            "kafka.fetch.max.wait.ms": "7",
            "kafka.check.crcs": "false",
            "kafka.request.timeout.ms": "1234",
            "kafka.group.id": "g",
            "kafka.max.poll.records": "5000",  # taken, without meaning
            "kafka.security.protocol": "PLAINTEXT",
        }
    )
    fetch = settings.fetch_options()
    assert (fetch.read_committed, fetch.max_partition_bytes, fetch.max_wait_ms, fetch.check_crc) == (
        True,
        1000,
        7,
        False,
    )
    client = settings.kafka.client_options("me")
    assert (client.request_timeout_ms, client.client_id, client.bootstrap[0].port) == (1234, "me", 9092)
    assert settings.group("q") == "g"
    assert batch().group("q") == "spark-q" and batch(groupIdPrefix="p").group("q") == "p-q"
    with pytest.raises(OptionError, match="not a port"):
        parse_kafka_settings({"kafka.bootstrap.servers": "h:x"}).client_options("me")


def test_times_and_columns() -> None:
    stream = parse_read({**SERVERS, "subscribe": "t", "maxTriggerDelay": "5m"}, streaming=True)
    assert stream.options[MAX_TRIGGER_DELAY] == 300_000
    assert batch(columns="Value, offset,value").columns == ("value", "offset")
    assert batch(includeHeaders="true").columns == (*RAW_COLUMNS, "headers")
    assert batch(columns="headers").columns == ("headers",)


def test_every_option_is_documented_once() -> None:
    lowered = [option.name.lower() for option in TABLE]
    assert len(set(lowered)) == len(lowered) and all(option.doc.endswith((".", "...")) for option in TABLE)
    assert set(parse_options({}, Use.READ).values) == {option.name for option in TABLE if option.use & Use.READ}


def test_a_loss_says_why_and_travels() -> None:
    loss = DataLoss(TopicPartition("t", 0), Reason.RETENTION, "offsets 0 to 4 of t-0 are gone")
    again = pickle.loads(pickle.dumps(loss))
    assert (again.reason, again.partition, str(again)) == (loss.reason, loss.partition, str(loss))
    assert "data loss (retention): offsets 0 to 4 of t-0 are gone" in str(loss)
