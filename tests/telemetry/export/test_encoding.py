"""Attributes, as OpenTelemetry's own messages read them; answers of collectors, as they write them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from ottla.telemetry.export import encoding
from ottla.telemetry.export.answers import Rejected, reason_in, rejected_in
from ottla.telemetry.export.encoding import Attribute

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
KINDS = {bool: "bool_value", str: "string_value", int: "int_value", float: "double_value"}


@given(
    st.dictionaries(
        TEXTS, st.one_of(TEXTS, st.booleans(), st.integers(1 - 2**63, 2**63 - 1), st.floats(allow_nan=False))
    )
)
def test_attributes_come_back(values: dict[str, Attribute]) -> None:
    found = Resource.FromString(encoding.resource(values)).attributes
    assert {each.key: getattr(each.value, KINDS[type(values[each.key])]) for each in found} == values
    assert len(found) == len(values)


def test_what_is_no_utf_8_and_no_int64() -> None:
    found = Resource.FromString(encoding.resource({"text": "a\udcffb", "number": 2**80})).attributes
    assert found[0].value.string_value == "a?b"
    assert found[1].value.double_value == 2.0**80


@given(st.integers(0, 2**63 - 1), TEXTS)
def test_a_partial_success(number: int, reason: str) -> None:
    answer = ExportMetricsServiceResponse()
    answer.partial_success.rejected_data_points = number
    answer.partial_success.error_message = reason
    assert rejected_in(answer.SerializeToString()) == Rejected(number, reason)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_answer(body: bytes) -> None:
    assert rejected_in(body).number >= 0
    assert isinstance(reason_in(body), str)


def test_an_error() -> None:
    assert reason_in(encoding.number(1, 3) + encoding.text(2, "too large")) == "too large"
    assert rejected_in(b"") == Rejected(0, "")
