"""Every client does the everyday things: send, receive, codecs, acknowledgements, times, nulls, big messages."""

import hashlib
import time
from collections.abc import Callable

import pytest
from tests.compat.conftest import MakeTopic, Node
from tests.support.clients.assigned import CODECS, Client, Message, Sending

START = int(time.time() * 1000) - 3_600_000  # the records' own time; recent, so that retention leaves them


@pytest.mark.feature("produce and consume")
def test_round_trip(client: Client, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic()
    sent = [Message(f"value {at}".encode(), f"key {at}".encode(), timestamp=START + at) for at in range(200)]
    assert client.produce(node.bootstrap, topic, 0, sent) == list(range(200))
    received = client.consume(node.bootstrap, topic, 0, 0, 200)
    assert received == [message._replace(offset=at) for at, message in enumerate(sent)]
    assert client.watermarks(node.bootstrap, topic, 0) == (0, 200)


@pytest.mark.feature("headers and nulls")
def test_headers_and_nulls(client: Client, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic()
    sent = [
        Message(None, b"tombstone", timestamp=START),
        Message(b"no key", None, timestamp=START),
        Message(b"", b"", timestamp=START),
        Message(b"x", b"k", (("a", b"1"), ("a", b"2"), ("ünï", b"\x00\xff"), ("empty", b"")), START),
    ]
    client.produce(node.bootstrap, topic, 0, sent)
    received = client.consume(node.bootstrap, topic, 0, 0, len(sent))
    assert [message._replace(offset=-1) for message in received] == sent


@pytest.mark.feature("acks 0, 1, all")
def test_acknowledgements(client: Client, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for at, acks in enumerate(("1", "all", "0")):
        offsets = client.produce(node.bootstrap, topic, 0, [Message(acks.encode())], Sending(acks=acks))
        assert acks == "0" or offsets == [at]  # without an answer a client can only guess
    assert [each.value for each in client.consume(node.bootstrap, topic, 0, 0, 3)] == [b"1", b"all", b"0"]


@pytest.mark.feature("idempotent producer")
def test_idempotent(client: Client, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for start in (0, 300):  # a second producer gets an id of its own
        sent = [Message(str(start + at).encode()) for at in range(300)]
        offsets = client.produce(node.bootstrap, topic, 0, sent, Sending(idempotent=True))
        assert offsets == list(range(start, start + 300))
    received = client.consume(node.bootstrap, topic, 0, 0, 600)
    assert [each.value for each in received] == [str(at).encode() for at in range(600)]


@pytest.mark.feature("seek by offset and time")
def test_positions(client: Client, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic()
    # One compressed batch: offsets and times inside it must be found too.
    sent = [Message(b"%d" % at, timestamp=START + 1000 * at) for at in range(50)]
    client.produce(node.bootstrap, topic, 0, sent, Sending(codec="gzip"))
    assert [each.offset for each in client.consume(node.bootstrap, topic, 0, 37, 5)] == [37, 38, 39, 40, 41]
    found = [client.offset_for_time(node.bootstrap, topic, 0, START + ms) for ms in (-1, 0, 1, 7000, 48_001, 49_001)]
    assert found == [0, 0, 1, 7, 49, None]


@pytest.mark.feature("large messages")
def test_large_messages(client: Client, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic(**{"max.message.bytes": "12000000"})
    body = hashlib.shake_256(client.name.encode()).digest(9_000_000)
    client.produce(node.bootstrap, topic, 0, [Message(b"small"), Message(body)], Sending(max_request_bytes=11_000_000))
    received = client.consume(node.bootstrap, topic, 0, 0, 2)
    assert [each.value for each in received] == [b"small", body]


def test_every_codec_with_every_client(all_clients: list[Client], node: Node, make_topic: MakeTopic) -> None:
    """Each client writes with each codec; each client reads what all of them wrote."""
    sources = [(client, codec) for client in all_clients for codec in CODECS]
    topic = make_topic("codecs", len(sources))
    sent = [Message(b"%d " % at * 50, b"%d" % at, timestamp=START) for at in range(100)]
    for partition, (client, codec) in enumerate(sources):
        client.produce(node.bootstrap, topic, partition, sent, Sending(codec=codec))
    wrong = [
        f"{codec} written by {client.name} {client.version}, read by {reader.name} {reader.version}"
        for reader in all_clients
        for partition, (client, codec) in enumerate(sources)
        if [message._replace(offset=-1) for message in reader.consume(node.bootstrap, topic, partition, 0, 100)] != sent
    ]
    assert wrong == []


@pytest.mark.feature("all codecs")
def test_codecs_of_one_client(client: Client, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic("codec", len(CODECS))
    sent = [Message(b"%d " % at * 50, timestamp=START) for at in range(20)]
    for partition, codec in enumerate(CODECS):
        client.produce(node.bootstrap, topic, partition, sent, Sending(codec=codec))
        received = client.consume(node.bootstrap, topic, partition, 0, 20)
        assert [message._replace(offset=-1) for message in received] == sent, codec


@pytest.mark.feature("topics made on first use")
def test_topic_made_by_producing(client: Client, node: Node, new_name: Callable[[str], str]) -> None:
    topic = new_name("made")
    assert client.produce(node.bootstrap, topic, 0, [Message(b"first")]) == [0]
    assert [each.value for each in client.consume(node.bootstrap, topic, 0, 0, 1)] == [b"first"]
