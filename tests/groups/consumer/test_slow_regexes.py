"""Expressions that take long to match: in slices, whatever the members do meanwhile."""

import time

import pytest
from tests.groups.consumer.stage import Consumers

from ottla.groups.consumer.regexes import Matching
from ottla.model import limits


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Consumers:
    monkeypatch.setattr(limits, "REGEX_WORK_PER_STEP", 5)
    stage = Consumers()
    stage.topics.sizes.update({f"orders-{number:03}": 1 for number in range(50)})
    return stage


def test_it_is_known_in_the_end_what_an_expression_means(stage: Consumers) -> None:
    stage.join("anna", regex="orders-0.*")
    turns = 0
    while not stage.consumer_group.regexes:
        stage.advance(1)
        stage.beat("anna")  # does not make it begin anew
        turns += 1
        assert turns < 1_000
    assert turns > 10, "it was done in one go"
    assert stage.consumer_group.regexes["orders-0.*"].topics == {f"orders-{number:03}" for number in range(50)}
    assert not stage.consumer_group.regexes_matching


def test_a_topic_that_came_meanwhile_is_not_overlooked(stage: Consumers) -> None:
    stage.join("anna", regex="orders-.*")
    stage.advance(1)
    stage.advance(1)
    assert stage.consumer_group.regexes_matching
    stage.topic("orders-late", "1")
    for _ in range(1_000):
        stage.advance(1)
    assert "orders-late" not in stage.consumer_group.regexes["orders-.*"].topics
    stage.advance(11_000)
    stage.beat("anna")
    for _ in range(1_000):
        stage.advance(1)
    assert "orders-late" in stage.consumer_group.regexes["orders-.*"].topics


def test_a_group_that_ends_meanwhile(stage: Consumers) -> None:
    stage.join("anna", regex="orders-.*")
    stage.advance(1)
    stage.leave("anna")
    for _ in range(100):
        stage.advance(1)


def test_one_step_is_short() -> None:
    """The dearest expressions on the longest names: by the CPU's time, the best of three."""
    names = ["".join("ab"[(at * at + number) % 7 % 2] for at in range(249)) for number in range(200)]
    dear = ["(a|b)*a(a|b){1000}", "((a?){100}b?){80}", "|".join(f"[a-z{at}]{{40}}" for at in range(200))]
    best_ms = []
    for _ in range(3):
        matching, worst_s = Matching(dear, names), 0.0
        found = None
        while found is None:
            started_s = time.thread_time()
            found = matching.go_on()
            worst_s = max(worst_s, time.thread_time() - started_s)
        best_ms.append(worst_s * 1000)
        if best_ms[-1] <= 50:
            break
    assert min(best_ms) <= 50
