"""Regular expressions of clients: compiling one holds up nobody else, however it is written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.server.talk import eventually
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.wire.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.txns.list_transactions import ListTransactionsRequest

# What each is made of: what is dear to parse, or makes a large program, or both.
MADE_OF = {
    "classes": "[^a]",
    "ranges": "[a-z]",
    "letters": "a",
    "one class": None,
    "choices": "a|",
    "groups": "(a*)*",
    "optional": "a?",
    "escapes": r"\n",
    "not closed": "[[:",
    "repeated": "a{1000}",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    with MeasuredNode(tmp_path_factory.mktemp("node"), {}) as started:
        yield started


CHARS_OF_THREE_BYTES_MAX = 10_000  # in a string of a request


def regex(kind: str, length: int, number: int) -> str:
    """An expression of about this length, of which there is no second one."""
    part = MADE_OF[kind]
    if part is not None:
        return f"{number}" + part * ((length - len(str(number))) // len(part))
    chars = min(length, CHARS_OF_THREE_BYTES_MAX) - 2 - len(str(number))
    return f"{number}[" + "".join(chr(0x4E00 + at * 7919 % 20_000) for at in range(chars)) + "]"


NUMBERS = count(1)


@pytest.mark.parametrize("length", [limits.REGEX_CHARS_MAX, 32_000])
@pytest.mark.parametrize("kind", MADE_OF)
def test_a_listing_of_transactions_with_a_pattern(node: MeasuredNode, kind: str, length: int) -> None:
    def ask(pattern: str) -> int:
        request = ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], duration_filter=-1, transactional_id_pattern=pattern
        )
        answer: Any = connection.call(request, 2)
        return int(answer.error_code)

    def attempt() -> Callback:
        codes: list[int] = []
        cost = node.cost(lambda: codes.append(ask(regex(kind, length, next(NUMBERS)))))
        if length > limits.REGEX_CHARS_MAX:
            assert codes == [ErrorCode.INVALID_REGULAR_EXPRESSION]
        return cost

    with node.connect() as connection:
        eventually(lambda: ask("begun") == ErrorCode.NONE, "the coordinator")
        assert best_of(attempt).cpu_ms <= BUDGET_MS


@pytest.mark.parametrize(("length", "code"), [(8_000, ErrorCode.NONE), (32_000, ErrorCode.INVALID_REGULAR_EXPRESSION)])
def test_a_subscription_by_a_long_regular_expression(node: MeasuredNode, length: int, code: ErrorCode) -> None:
    def known() -> bool:
        answer: Any = connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        return bool(answer.coordinators[0].error_code == ErrorCode.NONE and beat("begun") == ErrorCode.NONE)

    def beat(pattern: str) -> int:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=f"member-{next(NUMBERS)}",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=None,
            subscribed_topic_regex=pattern,
            topic_partitions=[],
        )
        answer: Any = connection.call(request, 1)
        return int(answer.error_code)

    def attempt() -> Callback:
        codes: list[int] = []
        cost = node.cost(lambda: codes.append(beat(regex("classes", length, next(NUMBERS)))))
        assert codes == [code]
        return cost

    with node.connect() as connection:
        eventually(known, "the coordinator")
        assert best_of(attempt).cpu_ms <= BUDGET_MS
