"""`topic(...)` in SQL: found where it is code, left alone where it is not."""

import pytest

from ottla.sql.rewrite import BadCall, rewrite


def test_a_topic_becomes_a_view_under_its_own_name() -> None:
    text, calls = rewrite("select orders.key from topic('orders') where key = 'a'")
    assert text == 'select orders.key from "topic_0" AS "orders" where key = \'a\''
    assert [(call.topic, call.options) for call in calls] == [("orders", {})]


@pytest.mark.parametrize("alias", [" o", " AS o", ' "o"'])
def test_an_alias_is_kept(alias: str) -> None:
    assert rewrite(f"select 1 from topic('orders'){alias}")[0] == f'select 1 from "topic_0"{alias}'


def test_options_are_named() -> None:
    _, (call,) = rewrite("select * from TOPIC ( 'it''s' , since := '1h', last => 5 )")
    assert (call.topic, call.options) == ("it's", {"since": "1h", "last": "5"})


def test_a_name_that_is_no_identifier_gets_no_alias() -> None:
    assert rewrite("select * from topic('a-b.c')")[0] == 'select * from "topic_0"'


@pytest.mark.parametrize(
    "text",
    [
        "select 'topic(''x'')'",
        "select 1 -- topic('x')",
        "select /* topic('x') */ 1",
        'select "topic(" from t',
        "select $$topic('x')$$",
    ],
)
def test_strings_names_and_comments_are_left_alone(text: str) -> None:
    assert rewrite(text) == (text, [])


def test_each_call_has_its_own_view() -> None:
    text, calls = rewrite("select * from topic('a') x join topic('a') y using (key)")
    assert text == 'select * from "topic_0" x join "topic_1" y using (key)'
    assert [call.view for call in calls] == ["topic_0", "topic_1"]


@pytest.mark.parametrize(
    "call", ["topic()", "topic(orders)", "topic('a', 'b')", "topic('a', x := )", "topic(name := 'a')", "topic('a'"]
)
def test_calls_without_sense_are_refused(call: str) -> None:
    with pytest.raises(BadCall):
        rewrite(f"select * from {call}")
