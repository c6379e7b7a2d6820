"""Frames: lengths, headers, and records that stay outside the buffer."""

import struct

import pytest

from ottla.wire.compile import WireError, decode, decoder, encode, encoder
from ottla.wire.frame import request_frame, response_parts
from ottla.wire.header import RequestHeader, ResponseHeader
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.records.fetch import FetchResponse
from ottla.wire.messages.records.produce import ProduceRequest


class Slice:
    """Stands for a range of a file: sized, but not bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)


def response(*records: object) -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse
    partitions = [
        topic.PartitionData(
            partition_index=index, error_code=0, high_watermark=9, aborted_transactions=None, records=each
        )
        for index, each in enumerate(records)
    ]
    return FetchResponse(responses=[topic(topic="t", partitions=partitions)])


def as_bytes(parts: list[object]) -> bytes:
    return b"".join(part.data if isinstance(part, Slice) else bytes(part) for part in parts)  # type: ignore[call-overload]


def test_request_frame() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    frame = request_frame(request, 4, 77, "me")
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    view = memoryview(frame)
    header, pos = decoder(RequestHeader, 2)(view, 4)
    assert header == RequestHeader(request_api_key=12, request_api_version=4, correlation_id=77, client_id="me")
    assert decode(HeartbeatRequest, 4, view[pos:]) == request


def test_response_in_one_piece() -> None:
    parts = response_parts(ApiVersionsResponse(error_code=0, api_keys=[]), 3, 5)
    assert len(parts) == 1
    frame = bytes(parts[0])
    assert struct.unpack_from(">ii", frame) == (len(frame) - 4, 5)
    assert decode(ApiVersionsResponse, 3, frame[8:]) == ApiVersionsResponse(error_code=0, api_keys=[])


@pytest.mark.parametrize("version", [4, 11, 12, 17])
@pytest.mark.parametrize("size", [1, 126, 127, 300, 70_000])
def test_spliced_records_arrive_where_bytes_would(version: int, size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    woven = response_parts(response(Slice(data), None, [Slice(data[:1]), Slice(data[1:])], Slice(b"")), version, 3)
    plain = response_parts(response(data, None, data, b""), version, 3)
    assert len(plain) == 1
    assert as_bytes(woven) == as_bytes(plain)
    assert [part for part in woven if isinstance(part, Slice)] != []
    assert all(len(part) > 0 for part in woven)


def test_splices_tell_positions() -> None:
    out, splices = bytearray(b"before"), []
    piece = Slice(b"12345")
    encoder(FetchResponse, 12)(response(piece), out, splices)
    assert splices == [(len(out) - 3, piece)]  # then come the tags of partition, topic and response
    assert out[:6] == b"before"


@pytest.mark.parametrize("records", [bytearray(b"abc"), memoryview(b"abc"), b"abc"])
def test_bytes_of_any_kind_are_inlined(records: object) -> None:
    assert encode(response(records), 12) == encode(response(b"abc"), 12)


def test_records_are_not_copied_on_the_way_in() -> None:
    topic = ProduceRequest.TopicProduceData
    data = [topic(name="t", partition_data=[topic.PartitionProduceData(index=0, records=b"abc")])]
    buffer = bytearray(encode(ProduceRequest(acks=1, timeout_ms=1, topic_data=data), 9))
    request, _ = decoder(ProduceRequest, 9)(memoryview(buffer))
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    buffer[buffer.index(b"abc")] = ord("X")
    assert records == b"Xbc"


def test_records_outside_the_buffer_need_a_connection() -> None:
    with pytest.raises(WireError, match="not bytes"):
        encode(response(Slice(b"x")), 12)
    topic = ProduceRequest.TopicProduceData
    data = [topic(name="t", partition_data=[topic.PartitionProduceData(index=0, records=Slice(b"x"))])]
    with pytest.raises(WireError, match="must be bytes"):
        request_frame(ProduceRequest(acks=1, timeout_ms=1, topic_data=data), 9, 1, None)


def test_headers_round_trip() -> None:
    for version in (0, 1):
        header = ResponseHeader(correlation_id=9)
        assert decode(ResponseHeader, version, encode(header, version)) == header
    # the client id keeps its old form in the flexible header, so that any node can read it
    frame = request_frame(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, 1, "id")
    assert frame[12:17] == b"\0\2id\0"
