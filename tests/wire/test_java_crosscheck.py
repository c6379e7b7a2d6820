"""Kafka's own Java classes judge our codecs: every message, every version, both directions.

Values are drawn from Kafka's definitions. Kafka decodes our bytes to the JSON we started from, and the bytes that
Kafka writes for that JSON are ours.
"""

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import tools
from tests.support.java.programs import JavaServer
from tests.support.messages.declared import RETIRED, class_of
from tests.support.messages.definitions import Definition, definitions
from tests.support.messages.json_form import blank_records, json_values, message_of

from ottla.wire.compile import decode, encode

DEFINITIONS = [each for each in definitions() if each.name not in RETIRED] if tools.missing() is None else []

# Each example is a handful of values and one round trip to the JVM; the first is the smallest value there is.
QUICK = settings(
    max_examples=8,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.name)
def test_every_version(java_wire: JavaServer, definition: Definition) -> None:
    for version in definition.all_versions():
        check_version(java_wire, definition, version)


def check_version(java: JavaServer, definition: Definition, version: int) -> None:
    cls = class_of(definition)

    @QUICK
    @given(st.lists(json_values(definition.fields, version), min_size=1, max_size=3))
    def agrees(values: list[dict[str, Any]]) -> None:
        messages = [message_of(cls, definition.fields, value) for value in values]
        ours = [bytes(encode(message, version)) for message in messages]
        items = [
            {"bytes": base64.b64encode(each).decode(), "json": value} for each, value in zip(ours, values, strict=True)
        ]
        answers = java.ask({"class": definition.java_class, "version": version, "items": items})
        for message, mine, value, answer in zip(messages, ours, values, answers, strict=True):
            assert "error" not in answer, f"{definition.name} v{version}: {answer}\n{message}"
            assert answer["left"] == 0, f"{definition.name} v{version}: Kafka left bytes of ours unread"
            assert answer["json"] == blank_records(value, definition.fields)
            assert base64.b64decode(answer["bytes"]) == mine, f"{definition.name} v{version}: {message}"
            assert decode(cls, version, memoryview(mine)) == message

    agrees()
