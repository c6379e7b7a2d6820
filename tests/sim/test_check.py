"""The checkers find what they are there to find, and nothing else."""

import pytest

from ottla.model.ids import TopicPartition
from ottla.sim.check import Guarantee, History, Payload, SimBounds, SimWriter, decode_payload, encode_payload

TP = TopicPartition("t", 0)


def value(payload: Payload) -> bytes:
    return encode_payload(payload, b"filling")


def payloads(count: int, writer: int = 1) -> list[Payload]:
    return [Payload(writer, 0, sequence) for sequence in range(count)]


@pytest.fixture
def history() -> History:
    history = History(Guarantee.SAFE)
    history.add_writer(SimWriter(1, idempotent=True, acks=-1))
    history.add_writer(SimWriter(2, idempotent=False, acks=1))
    for writer in (1, 2):
        for payload in payloads(10, writer):
            history.sending(payload)
    return history


def log_of(*content: Payload) -> list[tuple[int, bytes | None]]:
    return [(offset, value(payload)) for offset, payload in enumerate(content)]


def test_payloads_notice_any_damage() -> None:
    payload = Payload(3, 1, 77)
    data = value(payload)
    assert decode_payload(data) == payload
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        assert decode_payload(bytes(damaged)) is None
    assert decode_payload(data[:-1]) is decode_payload(b"") is decode_payload(None) is None


def test_a_good_history_is_good(history: History) -> None:
    one, two, three, *_ = payloads(5)
    other, *_ = payloads(5, writer=2)
    for offset, payload in enumerate((one, two, other)):
        history.acked(TP, payload, offset)
    history.acked(TP, Payload(9, 0, 0), -1)
    history.told_bounds(TP, SimBounds(0, 3), history.known_bounds(TP))
    history.read(TP, 0, value(one), None)
    history.read(TP, 1, value(two), 1)
    history.gave_up(three)
    history.final_log(TP, 0, log_of(one, two, other, other, three))
    assert history.violations == []


def expect(history: History, what: str) -> None:
    assert [violation for violation in history.violations if what in violation], history.violations


def test_loss(history: History) -> None:
    one, two, *_ = payloads(5)
    history.acked(TP, one, 0)
    history.acked(TP, two, 1)
    history.final_log(TP, 0, log_of(one))
    expect(history, "lost")


def test_loss_of_what_was_only_read(history: History) -> None:
    one, two, *_ = payloads(5)
    history.read(TP, 1, value(two), None)
    history.final_log(TP, 0, log_of(one))
    expect(history, "lost")


def test_another_record_at_an_acknowledged_offset(history: History) -> None:
    one, two, *_ = payloads(5)
    history.acked(TP, one, 0)
    history.final_log(TP, 0, log_of(two, one))
    expect(history, "offset 0 was")


def test_inventions_and_damage(history: History) -> None:
    history.read(TP, 0, value(Payload(1, 0, 4711)), None)
    expect(history, "invented")
    history.read(TopicPartition("t", 1), 0, value(payloads(1)[0]), None)
    assert len(history.violations) == 2, "right record, wrong partition"
    history.read(TP, 1, value(payloads(2)[1])[:-1] + b"!", None)
    expect(history, "corrupt")


def test_gaps(history: History) -> None:
    one, two, *_ = payloads(5)
    history.final_log(TP, 0, [(0, value(one)), (2, value(two))])
    expect(history, "not dense")


def test_duplicates_only_matter_to_idempotent_producers(history: History) -> None:
    once, other = payloads(1)[0], payloads(1, writer=2)[0]
    history.final_log(TP, 0, log_of(other, other))
    assert not history.violations
    history.final_log(TopicPartition("u", 0), 0, log_of(once, once))
    expect(history, "duplicate")


def test_order(history: History) -> None:
    one, two, three, *_ = payloads(5)
    history.final_log(TP, 0, log_of(one, three, two))
    expect(history, "reordered")


def test_order_of_what_was_acknowledged(history: History) -> None:
    one, two, three, *_ = payloads(5, writer=2)
    history.acked(TP, one, 0)
    history.acked(TP, two, 2)
    history.final_log(TP, 0, log_of(one, three, two))
    assert not history.violations, "a copy of a producer that is not idempotent"
    history.acked(TP, three, 1)
    history.final_log(TP, 0, log_of(one, three, two))
    expect(history, "reordered")


def test_the_order_of_what_a_producer_gave_up_is_open(history: History) -> None:
    one, two, three, *_ = payloads(5)
    history.gave_up(two)
    history.final_log(TP, 0, log_of(one, three, two))
    assert not history.violations


def test_bounds_do_not_go_back_but_answers_may_overtake_each_other(history: History) -> None:
    before = history.known_bounds(TP)
    history.erasing(TP, 5)
    history.told_bounds(TP, SimBounds(5, 10), before)
    history.told_bounds(TP, SimBounds(4, 9), before)
    assert not history.violations
    history.told_bounds(TP, SimBounds(4, 9), history.known_bounds(TP))
    expect(history, "log start went back")
    expect(history, "end went back")


def test_at_risk_the_end_may_be_lost_but_nothing_else_goes_wrong() -> None:
    history = History(Guarantee.AT_RISK)
    history.add_writer(SimWriter(1, idempotent=True, acks=-1))
    one, two, three, *_ = payloads(3)
    for offset, payload in enumerate((one, two, three)):
        history.sending(payload)
        history.acked(TP, payload, offset)
    history.final_log(TP, 0, log_of(one, three))
    assert not history.violations
    history.final_log(TP, 0, log_of(one))
    expect(history, "lost")


def test_nothing_is_erased_that_nobody_asked_to_erase(history: History) -> None:
    history.erasing(TP, 5)
    history.erased(TP, 5)
    history.told_bounds(TP, SimBounds(5, 10), history.known_bounds(TP))
    assert not history.violations
    history.told_bounds(TP, SimBounds(6, 10), history.known_bounds(TP))
    expect(history, "only 5 was asked for")


def test_a_late_copy_of_an_erased_record_is_no_disorder(history: History) -> None:
    one, two, *_ = payloads(5, writer=2)
    history.erasing(TP, 1)
    history.acked(TP, one, 0)
    history.final_log(TP, 1, [(1, value(two)), (2, value(one))])
    assert not history.violations


def test_on_a_rotten_disk_only_damage_that_is_served_counts() -> None:
    history = History(Guarantee.ROTTEN)
    one, two, *_ = payloads(3)
    history.sending(one)
    history.sending(two)
    history.acked(TP, one, 0)
    history.told_bounds(TP, SimBounds(7, 3), history.known_bounds(TP))
    history.final_log(TP, 0, [(5, value(two)), (3, value(two))])
    assert not history.violations
    history.read(TP, 1, value(one)[:-1] + b"!", None)
    expect(history, "corrupt")
