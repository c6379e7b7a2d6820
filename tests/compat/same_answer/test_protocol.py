"""The protocol's edges: versions, unknown APIs, broken bodies. The same bytes get the same treatment from both."""

import struct
from collections.abc import Iterator

import pytest
from tests.compat.conftest import versions_of
from tests.support.requests.raw import Closed, RawConnection
from tests.support.requests.same import Both, Plain, Side

from ottla.wire.api import API_NAMES
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

# Served by Ottla once the issue that brings it has landed; until then Kafka's answer lists more.
LATER = {
    "groups": (8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69),
    "transactions": (24, 25, 26, 27, 28, 65, 66),
    "share and streams groups": (76, 77, 78, 79, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92),
    "security": (17, 29, 30, 31, 36, 38, 39, 40, 41, 48, 49, 50, 51),
    "several nodes": (34, 43, 45, 46, 64, 80, 81),
}
LATER_KEYS = {key for keys in LATER.values() for key in keys}


@pytest.mark.parametrize("version", versions_of(ApiVersionsRequest))
def test_api_versions(both: Both, version: int) -> None:
    def script(side: Side) -> Iterator[Plain]:
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1.0")
        answer = side.call(request, version)
        served = [each for each in answer["api_keys"] if each["api_key"] not in LATER_KEYS]
        yield answer | {"api_keys": served}

    both.same(script)


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("raw", ""), ("bad name", "1"), ("raw", "ü"), ("-x", "1")])
def test_api_versions_with_odd_client_names(both: Both, name: str, version: str) -> None:
    def script(side: Side) -> Iterator[Plain]:
        answer = side.call(ApiVersionsRequest(client_software_name=name, client_software_version=version), 3)
        yield answer["error_code"]

    both.same(script)


def exchange(side: Side, frame: bytes) -> bytes | str:
    """What comes back for one frame on a connection of its own."""
    connection = RawConnection(side.bootstrap)
    try:
        connection.send(frame)
        return connection.receive()
    except Closed:
        return "closed"
    finally:
        connection.close()


def test_api_versions_of_the_future(both: Both) -> None:
    """A client newer than the broker is told, in the oldest form there is, which versions it may use (KIP-511)."""

    def script(side: Side) -> Iterator[Plain]:
        frame = bytearray(request_frame(ApiVersionsRequest(), 4, 7, "raw"))
        struct.pack_into(">h", frame, 6, 99)
        found = exchange(side, bytes(frame))
        assert isinstance(found, bytes)
        connection = RawConnection(side.bootstrap)
        answer = connection.decode(18, 0, found, 7)
        connection.close()
        assert isinstance(answer, ApiVersionsResponse)
        yield side.plain(answer, 0)

    both.same(script)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, *, flexible: bool) -> bytes:
    return struct.pack(">hhih3s", key, version, 5, 3, b"raw") + (b"\0" if flexible else b"")


METADATA = request_frame(MetadataRequest(topics=[MetadataRequest.Topic(name="x" * 50)]), 12, 5, "raw")
EDGES: dict[str, bytes] = {
    "an API that does not exist": framed(header(9999, 0, flexible=False)),
    "a negative API key": framed(header(-1, 0, flexible=False)),
    "a retired API": framed(header(4, 7, flexible=True) + b"\0" * 40),
    "a version too new": framed(header(3, 99, flexible=True) + b"\1\0\0"),
    "a version too old": framed(header(0, 0, flexible=False) + b"\0" * 10),
    "a negative version": framed(header(3, -1, flexible=False) + b"\0" * 10),
    "the unstable version": framed(header(22, 6, flexible=True) + b"\0" + b"\0" * 20),
    "an API of controllers only": framed(header(62, 4, flexible=True) + b"\0" * 40),
    "an empty frame": framed(b""),
    "a frame shorter than a header": framed(b"\0\3\0\1"),
    "a negative length": struct.pack(">i", -1) + b"x" * 20,
    "a length beyond the limit": struct.pack(">i", 0x7FFFFFFF) + b"x" * 20,
    "the length of an HTTP request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a body cut short": framed(METADATA[4:-20]),
    "an array count beyond the body": framed(header(3, 4, flexible=False) + struct.pack(">i", 1_000_000)),
    "a string beyond the body": framed(header(3, 4, flexible=False) + struct.pack(">ih", 1, 30_000) + b"x"),
    "null where null is not allowed": framed(header(3, 4, flexible=False) + struct.pack(">ih", 1, -1) + b"\0"),
    "a varint without an end": framed(header(3, 12, flexible=True) + b"\xff" * 12),
    "bytes after the body": framed(METADATA[4:] + b"junk"),
}
# What Kafka's reader lets pass (any negative count is null, bad text becomes question marks) and ours does not.
STRICTER: dict[str, bytes] = {
    "a negative array count": framed(header(3, 4, flexible=False) + struct.pack(">i", -5) + b"\0"),
    "text that is not UTF-8": framed(header(3, 4, flexible=False) + struct.pack(">ih", 1, 3) + b"\xff\xfe\xfd\0"),
}


@pytest.mark.parametrize("case", EDGES)
def test_edges(both: Both, case: str) -> None:
    """Kafka closes the connection on nearly all of them; what it answers, Ottla answers."""

    def script(side: Side) -> Iterator[Plain]:
        found = exchange(side, EDGES[case])
        yield found if isinstance(found, str) else "answered"

    both.same(script)


@pytest.mark.parametrize("case", STRICTER)
def test_where_we_are_stricter(both: Both, case: str, against: str) -> None:
    assert isinstance(exchange(both.kafka, STRICTER[case]), bytes)
    if against == "ottla":
        assert exchange(both.ottla, STRICTER[case]) == "closed"


@pytest.mark.parametrize("key", [each for each in API_NAMES if each not in LATER_KEYS])
def test_every_api_is_offered_or_refused_alike(both: Both, key: int) -> None:
    """A request with an empty body of a version beyond the last: refused by closing, whatever the API."""

    def script(side: Side) -> Iterator[Plain]:
        frame = framed(header(key, 55, flexible=True))
        found = exchange(side, frame)
        yield found if isinstance(found, str) else "answered"

    both.same(script)


def test_pipelined_answers_come_in_order(both: Both) -> None:
    def script(side: Side) -> Iterator[Plain]:
        connection = RawConnection(side.bootstrap)
        requests = [(ApiVersionsRequest(), 2), (MetadataRequest(topics=[]), 12), (ApiVersionsRequest(), 0)] * 20
        connection.send(b"".join(request_frame(each, version, at, None) for at, (each, version) in enumerate(requests)))
        yield [struct.unpack_from(">i", connection.receive())[0] for _ in requests]
        connection.close()

    assert both.same(script) == [list(range(60))]


def test_request_without_topics(both: Both) -> None:
    def script(side: Side) -> Iterator[Plain]:
        yield side.call(CreateTopicsRequest(topics=[], timeout_ms=1000), 7)

    both.same(script)


def test_acks_out_of_range(both: Both) -> None:
    def script(side: Side) -> Iterator[Plain]:
        for acks in (2, -2):
            yield side.call(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[]), 9)
        yield side.call(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[]), 9)

    both.same(script)
