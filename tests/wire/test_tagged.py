"""Tagged fields: written only when they say something, skipped when unknown."""

import pytest

from ottla.wire.compile import WireError, decode, encode
from ottla.wire.journal.consumer_group import ConsumerGroupMemberMetadataValue
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.varint import uvarint_bytes


def request() -> FetchRequest:
    return FetchRequest(max_wait_ms=1, min_bytes=2, topics=[])


def test_defaults_are_not_written() -> None:
    assert encode(request(), 15).endswith(b"\0")
    spoken = request()
    spoken.replica_state.replica_id = 3
    data = encode(spoken, 15)
    assert data.endswith(bytes.fromhex("01 01 0d 00000003 ffffffffffffffff 00"))
    assert decode(FetchRequest, 15, data) == spoken


def test_several_tags_in_order() -> None:
    spoken = request()
    spoken.cluster_id = ""
    spoken.replica_state.replica_epoch = 7
    data = encode(spoken, 15)
    assert data.endswith(bytes.fromhex("02 00 01 01 01 0d ffffffff 0000000000000007 00"))
    assert decode(FetchRequest, 15, data) == spoken


def test_tags_come_with_their_version() -> None:
    spoken = request()
    spoken.replica_state.replica_id = 3
    spoken.replica_id = 3
    assert decode(FetchRequest, 12, encode(spoken, 12)).replica_state.replica_id == -1
    assert decode(FetchRequest, 15, encode(spoken, 15)).replica_id == -1


@pytest.mark.parametrize("tag", [2, 127, 128, 70_000])
@pytest.mark.parametrize("size", [0, 1, 200])
def test_unknown_tags_are_skipped(tag: int, size: int) -> None:
    plain = encode(request(), 15)
    unknown = uvarint_bytes(tag) + uvarint_bytes(size) + bytes(size)
    assert decode(FetchRequest, 15, plain[:-1] + b"\1" + unknown) == request()
    hello = encode(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    assert decode(ApiVersionsRequest, 3, hello[:-1] + b"\2" + unknown * 2).client_software_name == "a"


def test_many_unknown_tags() -> None:
    plain = encode(request(), 15)
    tags = b"".join(uvarint_bytes(tag) + b"\0" for tag in range(100, 400))
    assert decode(FetchRequest, 15, plain[:-1] + uvarint_bytes(300) + tags) == request()


@pytest.mark.parametrize(
    "tags",
    [
        "01 05 09 00",  # nine bytes announced, one there
        "01 05 ffffffff0f",  # four billion announced
        "ffffffff0f 05 00",  # four billion tags announced
        "01 00 03 0261",  # a known tag that is shorter than it says
        "01 01 04 00000003",  # a known struct that ends too soon
        "02 05 00",  # one of two
        "01",
        "ffffffffffff01",
    ],
)
def test_malformed_tags(tags: str) -> None:
    plain = encode(request(), 15)
    with pytest.raises(WireError):
        decode(FetchRequest, 15, plain[:-1] + bytes.fromhex(tags))


def test_nullable_struct_as_a_tag() -> None:
    value = ConsumerGroupMemberMetadataValue(
        instance_id="",
        rack_id="",
        client_id="",
        client_host="",
        subscribed_topic_names=[],
        subscribed_topic_regex="",
        server_assignor=None,
    )
    assert encode(value, 0).hex() == "010101010101ffffffff0000"
    value.classic_member_metadata = None
    assert encode(value, 0).hex() == "010101010101ffffffff0001000100"
    assert decode(ConsumerGroupMemberMetadataValue, 0, encode(value, 0)) == value
    value.classic_member_metadata = value.ClassicMemberMetadata(session_timeout_ms=5, supported_protocols=[])
    assert encode(value, 0).hex() == "010101010101ffffffff0001000701000000050100"
    assert decode(ConsumerGroupMemberMetadataValue, 0, encode(value, 0)) == value
    with pytest.raises(WireError, match="says neither null nor present"):
        decode(ConsumerGroupMemberMetadataValue, 0, bytes.fromhex("010101010101ffffffff0001000702000000050100"))


def test_a_tag_that_is_a_list() -> None:
    response = FetchResponse(responses=[], node_endpoints=[FetchResponse.NodeEndpoint(node_id=1, host="h", port=9)])
    assert decode(FetchResponse, 16, encode(response, 16)) == response
    assert decode(FetchResponse, 15, encode(response, 15)).node_endpoints == []
